/* The least that opening connections can cost: blocking connect and accept loops, nothing sent.
 *
 *     floor PAIRS EACH PORT
 *
 * PAIRS server and PAIRS client processes, each pair with its own listener on 127.1.0.x:PORT and EACH connections, all of
 * which are added to an epoll instance, since a program that holds connections must hear of them. Prints JSON: connections
 * held by both ends, seconds from the start signal until the last end was done, and the CPU seconds of each side by then
 * (getrusage of each process at its own end, so that closing is not in it). */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PAIRS = 250, BACKLOG = 4096 };

/* What a process tells its parent; shorter than PIPE_BUF, so it is written whole. */
struct done {
    int server;
    int count;
    double cpu_s;
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static double cpu_s(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static struct sockaddr_in address(int pair, int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(0x7f010001 + pair);
    return a;
}

static int listener(int pair, int port) {
    struct sockaddr_in a = address(pair, port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, BACKLOG)) {
        perror("listen");
        exit(1);
    }
    return fd;
}

static int accept_one(int listening) {
    return accept(listening, NULL, NULL);
}

static int connect_one(struct sockaddr_in *to) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)to, sizeof *to) ? -1 : fd;
}

/* One process: waits for the start signal (the end of `start`), opens, tells, and holds until it is killed. */
static void work(int server, int listening, struct sockaddr_in to, int each, int start, int tell) {
    struct done d = {.server = server};
    int poll = epoll_create1(0);
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!server && read(start, &byte, 1) != 0) _exit(1);
    for (; d.count < each; d.count++) {
        int fd = server ? accept_one(listening) : connect_one(&to);
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        if (fd < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, fd, &e)) {
            perror(server ? "accept" : "connect");
            break;
        }
    }
    d.cpu_s = cpu_s();
    if (write(tell, &d, sizeof d) != sizeof d) _exit(1);
    for (;;) pause();
}

int main(int argc, char **argv) {
    int pairs = argc == 4 ? atoi(argv[1]) : 0, each = argc == 4 ? atoi(argv[2]) : 0;
    int start[2], tell[2], listening[MOST_PAIRS], held[2] = {0, 0};
    double cpu[2] = {0, 0};
    pid_t children[2 * MOST_PAIRS];
    if (pairs < 1 || pairs > MOST_PAIRS || each < 1 || pipe(start) || pipe(tell)) {
        fprintf(stderr, "floor PAIRS EACH PORT, PAIRS up to %d\n", MOST_PAIRS);
        return 2;
    }
    int port = atoi(argv[3]);
    for (int p = 0; p < pairs; p++) listening[p] = listener(p, port);
    for (int i = 0; i < 2 * pairs; i++) {
        int server = i < pairs, pair = i % pairs;
        if ((children[i] = fork()) == 0) {
            close(start[1]);
            work(server, listening[pair], address(pair, port), each, start[0], tell[1]);
        }
        if (children[i] < 0) {
            perror("fork");
            while (i--) kill(children[i], SIGKILL);
            return 1;
        }
    }
    close(start[0]);
    double begin = now_s();
    close(start[1]);
    int failed = 0;
    for (int i = 0; i < 2 * pairs && !failed; i++) {
        struct done d;
        if (read(tell[0], &d, sizeof d) != sizeof d) return 1;
        held[d.server] += d.count;
        cpu[d.server] += d.cpu_s;
        failed = d.count < each; /* its peer would wait for ever */
    }
    double seconds = now_s() - begin;
    for (int i = 0; i < 2 * pairs; i++) kill(children[i], SIGKILL);
    while (wait(NULL) > 0) {
    }
    printf("{\"held\": %d, \"seconds\": %.6f, \"client_cpu_s\": %.6f, \"server_cpu_s\": %.6f}\n",
           held[0] < held[1] ? held[0] : held[1], seconds, cpu[0], cpu[1]);
    return failed;
}
