/* A TCP server that keeps nothing of a connection, so that the memory of a machine is its client's alone.
 *
 *     stateless DEVICE NETWORK
 *
 * Makes the TUN device DEVICE and routes NETWORK (10.77.0.0/16) to it. Every address and port there accepts every connection and
 * responds to each segment with data as `throng serve` responds to `GET /?length=N` (N at most 1,200: one segment). What it
 * sends follows from the packet it replies to: the sequence number is what the client acknowledged. Nothing is sent again; a client that
 * missed something repeats its own segment. Each second, and at the end, prints a line of JSON: SYNs, requests, FINs and resets so far. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, IP = 20, TCP = 20, MSS = 1460, MOST = 1200, BATCH = 256 };

static uint64_t syns, requests, fins, resets;
static volatile sig_atomic_t ended;

static void end(int signal) {
    (void)signal;
    ended = 1;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static uint32_t add(const void *bytes, int count, uint32_t sum) {
    const uint16_t *words = bytes;
    for (; count > 1; count -= 2) sum += *words++;
    return count ? sum + *(const uint8_t *)words : sum;
}

static uint16_t folded(uint32_t sum) {
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static uint16_t read16(const uint8_t *at) {
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t read32(const uint8_t *at) {
    return (uint32_t)read16(at) << 16 | read16(at + 2);
}

static void write16(uint8_t *at, uint16_t value) {
    at[0] = (uint8_t)(value >> 8), at[1] = (uint8_t)value;
}

static void write32(uint8_t *at, uint32_t value) {
    write16(at, (uint16_t)(value >> 16)), write16(at + 2, (uint16_t)value);
}

/* The reply to `packet`, with `length` bytes of content and the header before it that HTTP wants, or none if negative. */
static void reply(int device, const uint8_t *packet, uint32_t seq, uint32_t ack, int flags, int length) {
    static uint8_t out[IP + TCP + MSS];
    const uint8_t *tcp = packet + (packet[0] & 15) * 4;
    int options = flags & SYN ? 4 : 0, data = 0;
    memset(out, 0, IP + TCP + 4);
    uint8_t *to = out + IP;
    if (length >= 0) {
        char *text = (char *)to + TCP;
        data = sprintf(text, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", length);
        memset(text + data, 'x', length);
        data += length;
    }
    int total = IP + TCP + options + data;
    out[0] = 0x45, out[8] = 64, out[9] = IPPROTO_TCP;
    write16(out + 2, total);
    memcpy(out + 12, packet + 16, 4), memcpy(out + 16, packet + 12, 4);
    uint16_t sum = folded(add(out, IP, 0));
    memcpy(out + 10, &sum, 2);
    memcpy(to, tcp + 2, 2), memcpy(to + 2, tcp, 2);
    write32(to + 4, seq), write32(to + 8, ack);
    to[12] = (uint8_t)((TCP + options) / 4 << 4), to[13] = (uint8_t)flags;
    write16(to + 14, 65535);
    if (options) to[TCP] = 2, to[TCP + 1] = 4, write16(to + TCP + 2, MSS);
    sum = folded(add(to, total - IP, add(out + 12, 8, htons(IPPROTO_TCP) + htons(total - IP))));
    memcpy(to + 16, &sum, 2);
    /* A full queue loses it, as a network does. */
    if (write(device, out, total) != total && errno != EAGAIN && errno != ENOBUFS) die("write");
}

static int asked_length(const uint8_t *data, int count) {
    char text[256];
    int kept = count < (int)sizeof text - 1 ? count : (int)sizeof text - 1;
    memcpy(text, data, kept), text[kept] = 0;
    const char *at = strstr(text, "length=");
    int length = at ? atoi(at + 7) : 12;
    return length < 1 ? 1 : length > MOST ? MOST : length;
}

static void handle(int device, const uint8_t *packet, int size) {
    int header = (packet[0] & 15) * 4;
    if (size < header + TCP || packet[0] >> 4 != 4 || packet[9] != IPPROTO_TCP) return;
    const uint8_t *tcp = packet + header;
    int flags = tcp[13], data = read16(packet + 2) - header - (tcp[12] >> 4) * 4;
    uint32_t seq = read32(tcp + 4), ack = read32(tcp + 8);
    if (flags & RST) {
        resets++;
    } else if (flags & SYN) {
        syns++;
        /* Any number does: a multiplicative hash of the ports and addresses. */
        uint32_t initial = (read32(tcp) * 2654435761u) ^ (read32(packet + 12) * 2246822519u) ^ read32(packet + 16);
        reply(device, packet, initial, seq + 1, SYN | ACK, -1);
    } else if (data > 0) {
        requests++;
        reply(device, packet, ack, seq + data, ACK | PSH, asked_length(tcp + (tcp[12] >> 4) * 4, data));
    } else if (flags & FIN) {
        fins++;
        reply(device, packet, ack, seq + 1, ACK | FIN, -1);
    }
}

static int device_for(const char *name, const char *network) {
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (device < 0 || ioctl(device, TUNSETIFF, &request)) die("/dev/net/tun");
    char command[512];
    snprintf(command, sizeof command,
             "ip link set %s up txqueuelen 100000 && ip route add %s dev %s && sysctl -qw net.ipv4.conf.%s.forwarding=1", name,
             network, name, name);
    if (system(command)) exit(1);
    return device;
}

static void print(void) {
    printf("{\"syns\": %lu, \"requests\": %lu, \"fins\": %lu, \"resets\": %lu}\n", syns, requests, fins, resets);
    fflush(stdout);
}

int main(int count, char **words) {
    if (count != 3) return fprintf(stderr, "stateless DEVICE NETWORK\n"), 2;
    signal(SIGINT, end), signal(SIGTERM, end);
    int device = device_for(words[1], words[2]);
    uint8_t packet[65536];
    for (time_t printed = 0; !ended;) {
        int read_now = 0;
        for (int size; read_now < BATCH && (size = (int)read(device, packet, sizeof packet)) > 0; read_now++)
            handle(device, packet, size);
        if (time(NULL) != printed) printed = time(NULL), print();
        struct pollfd readable = {.fd = device, .events = POLLIN};
        if (read_now == 0) poll(&readable, 1, 100);
    }
    print();
    return 0;
}
