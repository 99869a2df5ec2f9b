/* ho_accept PORT BACKLOG RATE LIMIT [KIB]: HTTP/1.1 on one thread with poll. Accepts RATE connections a second at most (0: at once), and
 * LIMIT in all (0: no limit; above it, it accepts no more). Each connection has KIB KiB of memory, written to; where there is none, it is
 * closed. Prints `full`, `no memory`. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **words) {
    static struct pollfd fds[65536];
    static void *blocks[65536];
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    int backlog = atoi(words[2]), limit = atoi(words[4]), count = 1, accepted = 0, on = 1;
    double rate = atof(words[3]), due = now();
    size_t bytes = argc > 5 ? (size_t)atoi(words[5]) << 10 : 0;
    char buffer[65536];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (void *)&address, sizeof address) || listen(listener, backlog)) return perror("listen"), 1;
    fds[0].fd = listener;
    for (;;) {
        int takes = now() >= due && !(limit && accepted >= limit);
        fds[0].events = takes ? POLLIN : 0;
        poll(fds, count, rate > 0 ? 5 : 1000);
        if (takes && fds[0].revents & POLLIN) {
            int one = accept(listener, 0, 0);
            if (one < 0) {
                if (errno != EAGAIN) perror("accept"), usleep(50000);
            } else {
                void *block = 0;
                accepted++;
                if (limit && accepted == limit) puts("full"), fflush(stdout);
                if (rate > 0) due = now() + 1 / rate;
                if (bytes) {
                    block = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                    if (block == MAP_FAILED) {
                        puts("no memory"), fflush(stdout), close(one);
                        continue;
                    }
                    memset(block, 1, bytes);
                }
                blocks[count] = block;
                fds[count++] = (struct pollfd){.fd = one, .events = POLLIN};
            }
        }
        for (int index = 1; index < count; index++) {
            if (!fds[index].revents) continue;
            ssize_t got = read(fds[index].fd, buffer, sizeof buffer);
            if (got > 0 && write(fds[index].fd, ok, sizeof ok - 1) > 0) continue;
            close(fds[index].fd);
            if (blocks[index]) munmap(blocks[index], bytes);
            fds[index] = fds[--count], blocks[index] = blocks[count];
            if (!limit) accepted--;
            index--;
        }
    }
}
