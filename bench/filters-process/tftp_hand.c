/* Gives the same file as tftp.c with the plain C state machine, whose system calls are answered here. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

static ssize_t fake_receive(void *to, void *from);
static ssize_t fake_read(void *to, size_t size, off_t at);
static ssize_t fake_send(const void *packet);

#define recvfrom(socket, to, size, flags, from, length) fake_receive(to, from)
#define sendto(socket, packet, size, flags, to, length) fake_send(packet)
#define pread(file, to, size, at) fake_read(to, size, at)
#define main program
#define on_packet static_on_packet
#include "../../examples/tftp/plain/tftp.c"
#undef main
#undef on_packet

static const uint8_t *last;
static uint8_t block_number[2];
static long sent;
static uint32_t hash = 2166136261u;

static ssize_t fake_receive(void *to, void *from)
{
    memcpy(to, "\0\4", 2);
    memcpy((uint8_t *)to + 2, block_number, 2);
    memcpy(from, &transfers[0].peer, sizeof transfers[0].peer);
    return 4;
}

static ssize_t fake_read(void *to, size_t size, off_t at)
{
    memset(to, 'a' + (int)(at / 512 % 26), size);
    return (ssize_t)size;
}

static ssize_t fake_send(const void *packet)
{
    last = packet;
    return 0;
}

/* What is counted. */
__attribute__((noinline)) void on_packet(struct transfer *t) { static_on_packet(t); }

int main(int argc, char **argv)
{
    const long blocks = argc > 1 ? atol(argv[1]) : 1;
    struct transfer *t = &transfers[0];
    t->size = STANDARD;
    t->state = SENDING;
    t->peer.sin_port = 1000;
    (void)program;
    if (!read_ahead(t)) return 1;
    send_block(t);
    for (;;) {
        memcpy(block_number, last + 2, 2);
        hash = (hash ^ (uint32_t)(last[2] << 16 | last[3] << 8 | last[4])) * 16777619u;
        if (++sent == blocks) break;
        on_packet(t);
    }
    printf("%ld %08x\n", sent, (unsigned)hash);
    return 0;
}
