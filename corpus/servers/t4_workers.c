/* t4_workers PORT WORKERS MICROSECONDS: HTTP/1.1 of some processes that share a listener, with so much CPU for each request. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

static void spin(long micros) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    int64_t until = now.tv_sec * 1000000000LL + now.tv_nsec + micros * 1000LL;
    volatile unsigned hash = 7;
    do {
        for (int i = 0; i < 2000; i++) hash = hash * 31 + i;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000000000LL + now.tv_nsec < until);
}

static void work(int listener, long micros) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int events = epoll_create1(0);
    struct epoll_event one = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.fd = listener};
    epoll_ctl(events, EPOLL_CTL_ADD, listener, &one);
    char buffer[8192];
    for (;;) {
        struct epoll_event ready[16];
        int count = epoll_wait(events, ready, 16, -1);
        for (int nth = 0; nth < count; nth++) {
            int file = ready[nth].data.fd;
            if (file == listener) {
                int made = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                if (made < 0) continue;
                struct epoll_event other = {.events = EPOLLIN, .data.fd = made};
                epoll_ctl(events, EPOLL_CTL_ADD, made, &other);
                continue;
            }
            ssize_t size = read(file, buffer, sizeof buffer);
            if (size < 0 && errno == EAGAIN) continue;
            if (size <= 0) {
                close(file);
                continue;
            }
            spin(micros);
            if (write(file, reply, sizeof reply - 1) < 0) close(file);
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    signal(SIGPIPE, SIG_IGN);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 611)) return 1;
    for (int nth = 0; nth < atoi(argv[2]); nth++)
        if (fork() == 0) work(listener, atol(argv[3]));
    while (wait(NULL) > 0) {}
    return 0;
}
