/* The same TFTP server and client as a plain C state machine, for comparison: one process, `poll`, and the state of
 * each transfer in a structure.
 *
 *   tftp serve PORT                  serves the files of the current folder
 *   tftp get|put ADDRESS PORT NAME   gets or puts one */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RRQ = 1, WRQ, DATA, ACK, ERROR, OACK };
enum { NOT_FOUND = 1, NOT_ALLOWED, FULL, ILLEGAL, UNKNOWN_ID, EXISTS };
enum { BLOCK = 1428, STANDARD = 512, HEADER = 4, TRANSFERS = 8, PATIENCE_MS = 1000, TRIES = 6, NAME = 128 };

enum state {
    IDLE,       /* no transfer; the last acknowledgement may have to be retransmitted */
    ASKING_GET, /* a read request is in transit */
    ASKING_PUT, /* a write request is in transit */
    SENDING,    /* a block, or the reply to a read request, is in transit */
    RECEIVING,  /* an acknowledgement is in transit; waits for a block */
};

struct transfer {
    enum state state;
    int socket;
    struct sockaddr_in peer;
    int file;
    char name[NAME + 1];
    char draft[32];
    int size;
    uint16_t block;
    off_t at;
    bool last;
    uint8_t packet[BLOCK + HEADER];
    size_t length;
    /* The next block, read while the current one is in transit. */
    uint8_t next[BLOCK];
    ssize_t next_length;
    int tries;
    int64_t deadline_ms;
    int status;
    char reason[64];
};

static struct transfer transfers[TRANSFERS];
static int folder;

static int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static bool same_peer(const struct sockaddr_in *one, const struct sockaddr_in *other)
{
    return one->sin_addr.s_addr == other->sin_addr.s_addr && one->sin_port == other->sin_port;
}

/* -- packets ------------------------------------------------------------------------------------------------------- */

static unsigned get16(const uint8_t *p) { return (unsigned)p[0] << 8 | p[1]; }

static void put16(uint8_t *p, unsigned n)
{
    p[0] = (uint8_t)(n >> 8);
    p[1] = (uint8_t)n;
}

static unsigned opcode(const uint8_t *p, size_t length) { return length < HEADER ? 0 : get16(p); }

/* The end of the text at `from`. */
static size_t end(const uint8_t *p, size_t length, size_t from)
{
    while (from < length && p[from]) from++;
    return from;
}

static bool is(const uint8_t *p, size_t length, size_t from, const char *word)
{
    size_t to = end(p, length, from);
    return to - from == strlen(word) && !strncasecmp((const char *)p + from, word, to - from);
}

static int number(const uint8_t *p, size_t length, size_t from)
{
    int n = 0;
    for (size_t to = end(p, length, from); from < to; from++) {
        if (p[from] < '0' || p[from] > '9' || n > 65535) return 0;
        n = 10 * n + (p[from] - '0');
    }
    return n;
}

/* The block size requested by the options from `at` on; 0 if there is no valid one. */
static int block_size(const uint8_t *p, size_t length, size_t at)
{
    while (at < length) {
        size_t value = end(p, length, at) + 1;
        if (is(p, length, at, "blksize")) {
            int n = number(p, length, value);
            return 8 <= n && n <= 65464 ? n : 0;
        }
        at = end(p, length, value) + 1;
    }
    return 0;
}

static size_t make_error(uint8_t *p, size_t room, unsigned code, const char *reason)
{
    put16(p, ERROR);
    put16(p + 2, code);
    return HEADER + (size_t)snprintf((char *)p + HEADER, room - HEADER, "%s", reason) + 1;
}

static void refuse(int socket, const struct sockaddr_in *peer, unsigned code, const char *reason)
{
    uint8_t p[HEADER + 64];
    size_t length = make_error(p, sizeof p, code, reason);
    sendto(socket, p, length, 0, (const struct sockaddr *)peer, sizeof *peer);
}

/* -- files --------------------------------------------------------------------------------------------------------- */

static int open_below(const char *name, uint64_t flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
}

static unsigned error_code(int error)
{
    switch (error) {
    case ENOENT: return NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
    case EXDEV: return NOT_ALLOWED;
    case ENOSPC:
    case EDQUOT: return FULL;
    case EEXIST: return EXISTS;
    default: return 0;
    }
}

static bool open_to_read(struct transfer *t)
{
    struct stat status;
    t->file = open_below(t->name, O_RDONLY | O_NONBLOCK);
    if (t->file < 0) return false;
    if (fstat(t->file, &status) == 0 && S_ISREG(status.st_mode)) return true;
    close(t->file);
    t->file = -1;
    errno = EINVAL;
    return false;
}

/* A new file is written under a temporary name and renamed when it is complete. */
static bool open_to_write(struct transfer *t)
{
    struct stat status;
    if (strchr(t->name, '/')) {
        errno = EACCES;
        return false;
    }
    if (fstatat(folder, t->name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return false;
    }
    snprintf(t->draft, sizeof t->draft, ".tftp-%d-%d", (int)getpid(), (int)(t - transfers));
    t->file = openat(folder, t->draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return t->file >= 0;
}

static bool keep_file(struct transfer *t)
{
    bool kept = close(t->file) == 0 && linkat(folder, t->draft, folder, t->name, 0) == 0;
    int error = errno;
    unlinkat(folder, t->draft, 0);
    t->draft[0] = 0;
    t->file = -1;
    errno = error;
    return kept;
}

static void forget_file(struct transfer *t)
{
    if (t->file >= 0) close(t->file);
    if (t->draft[0]) unlinkat(folder, t->draft, 0);
    t->draft[0] = 0;
    t->file = -1;
}

static bool read_all(int file, uint8_t *to, size_t size, off_t at, ssize_t *length)
{
    *length = 0;
    while ((size_t)*length < size) {
        ssize_t count = pread(file, to + *length, size - (size_t)*length, at + *length);
        if (count == 0) return true;
        if (count > 0) *length += count;
        else if (errno != EINTR) return false;
    }
    return true;
}

static bool write_all(int file, const uint8_t *from, size_t size, off_t at)
{
    while (size > 0) {
        ssize_t count = pwrite(file, from, size, at);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        from += count;
        size -= (size_t)count;
        at += count;
    }
    return true;
}

/* -- one transfer -------------------------------------------------------------------------------------------------- */

static void transmit(struct transfer *t)
{
    sendto(t->socket, t->packet, t->length, 0, (struct sockaddr *)&t->peer, sizeof t->peer);
}

static void transmit_new(struct transfer *t)
{
    t->tries = 1;
    t->deadline_ms = now_ms() + PATIENCE_MS;
    transmit(t);
}

static void finish(struct transfer *t, int status, const char *reason)
{
    forget_file(t);
    t->state = IDLE;
    t->status = status;
    snprintf(t->reason, sizeof t->reason, "%s", reason);
}

static void fail(struct transfer *t, unsigned code, const char *reason)
{
    if (t->state != ASKING_GET && t->state != ASKING_PUT) {
        t->length = make_error(t->packet, sizeof t->packet, code, reason);
        transmit(t);
    }
    finish(t, 1, reason);
}

/* The transfer has failed: later packets of the peer get the reply to an unknown transfer. */
static void give_up(struct transfer *t, const char *reason)
{
    t->length = make_error(t->packet, sizeof t->packet, UNKNOWN_ID, "unknown transfer");
    finish(t, 1, reason);
}

static void fail_of(struct transfer *t, int error) { fail(t, error_code(error), strerror(error)); }

static bool read_ahead(struct transfer *t)
{
    if (t->last || read_all(t->file, t->next, (size_t)t->size, t->at, &t->next_length)) return true;
    fail_of(t, errno);
    return false;
}

static void send_block(struct transfer *t)
{
    t->block++;
    put16(t->packet, DATA);
    put16(t->packet + 2, t->block);
    memcpy(t->packet + HEADER, t->next, (size_t)t->next_length);
    t->length = HEADER + (size_t)t->next_length;
    t->at += t->next_length;
    t->last = t->next_length < t->size;
    transmit_new(t);
    read_ahead(t);
}

static void acknowledge(struct transfer *t)
{
    put16(t->packet, ACK);
    put16(t->packet + 2, t->block);
    t->length = HEADER;
    transmit_new(t);
}

static void take_block(struct transfer *t, const uint8_t *p, size_t length)
{
    size_t content = length - HEADER;
    if (content > (size_t)t->size) {
        fail(t, ILLEGAL, "block too large");
        return;
    }
    if (!write_all(t->file, p + HEADER, content, t->at)) {
        fail_of(t, errno);
        return;
    }
    t->state = RECEIVING;
    t->block++;
    t->at += (off_t)content;
    /* The last acknowledgement follows the close of the file. */
    if (content < (size_t)t->size) {
        if (!keep_file(t)) {
            fail_of(t, errno);
            return;
        }
        acknowledge(t);
        finish(t, 0, "");
        return;
    }
    acknowledge(t);
}

/* The first answer to a request acknowledges options or not; without options, blocks have the default size. */
static bool agree(struct transfer *t, const uint8_t *p, size_t length)
{
    int size = opcode(p, length) == OACK ? block_size(p, length, 2) : 0;
    t->size = size ? size : STANDARD;
    if (t->size <= BLOCK) return true;
    t->state = RECEIVING;
    fail(t, ILLEGAL, "block too large");
    return false;
}

static void on_answer(struct transfer *t, const uint8_t *p, size_t length)
{
    unsigned op = opcode(p, length);
    unsigned block = op ? get16(p + 2) : 0;
    if (op == ERROR) {
        char reason[64];
        snprintf(reason, sizeof reason, "%.*s", (int)(end(p, length, HEADER) - HEADER), p + HEADER);
        give_up(t, reason);
        return;
    }
    switch (t->state) {
    case IDLE:
        break;
    case ASKING_GET:
        if (op == OACK) {
            if (!agree(t, p, length)) return;
            t->state = RECEIVING;
            acknowledge(t);
        } else if (op == DATA && block == 1) {
            if (agree(t, p, length)) take_block(t, p, length);
        }
        break;
    case ASKING_PUT:
        if (op == OACK || (op == ACK && block == 0)) {
            if (!agree(t, p, length)) return;
            t->state = SENDING;
            if (read_ahead(t)) send_block(t);
        }
        break;
    case SENDING:
        /* A repeated old acknowledgement causes no retransmission: packets would be duplicated forever. */
        if (op != ACK || block != t->block) break;
        if (t->last) finish(t, 0, "");
        else send_block(t);
        break;
    case RECEIVING:
        if (op != DATA) break;
        if (block == (uint16_t)(t->block + 1)) take_block(t, p, length);
        else if (t->at > 0 && block == t->block) transmit(t); /* a repeated last block: its acknowledgement was lost */
        break;
    }
}

static void on_packet(struct transfer *t)
{
    uint8_t p[65536];
    struct sockaddr_in from;
    socklen_t from_length = sizeof from;
    ssize_t length = recvfrom(t->socket, p, sizeof p, MSG_DONTWAIT, (struct sockaddr *)&from, &from_length);
    if (length < 0 || length > BLOCK + HEADER) return;
    bool first = t->state == ASKING_GET || t->state == ASKING_PUT;
    unsigned op = opcode(p, (size_t)length);
    if (!same_peer(&from, &t->peer)) {
        if (!first || from.sin_addr.s_addr != t->peer.sin_addr.s_addr) {
            if (op != ERROR) refuse(t->socket, &from, UNKNOWN_ID, "unknown transfer");
            return;
        }
        /* The peer chooses its port for the transfer. */
        if (op == ERROR || op == OACK || op == DATA || op == ACK) t->peer = from;
    }
    if (t->state == IDLE) {
        /* A repeated last block means that the last acknowledgement or error was lost. No other block is answered. */
        if (op == DATA && (get16(t->packet) == ERROR || get16(p + 2) == t->block)) transmit(t);
        return;
    }
    on_answer(t, p, (size_t)length);
}

static void on_silence(struct transfer *t)
{
    if (t->tries == TRIES) {
        give_up(t, "no answer");
        return;
    }
    t->deadline_ms = now_ms() + ((int64_t)PATIENCE_MS << t->tries);
    t->tries++;
    transmit(t);
}

/* -- server -------------------------------------------------------------------------------------------------------- */

static void begin(struct transfer *t, const struct sockaddr_in *peer, unsigned op, int asked)
{
    t->peer = *peer;
    t->size = asked == 0 ? STANDARD : asked < BLOCK ? asked : BLOCK;
    t->block = 0;
    t->at = 0;
    t->last = false;
    t->state = op == RRQ ? SENDING : RECEIVING;
    if (op == RRQ ? !open_to_read(t) : !open_to_write(t)) {
        fail_of(t, errno);
        return;
    }
    if (op == RRQ && !read_ahead(t)) return;
    if (asked) {
        put16(t->packet, OACK);
        t->length = 2 + (size_t)sprintf((char *)t->packet + 2, "blksize%c%d", 0, t->size) + 1;
        transmit_new(t);
    } else if (op == RRQ) {
        send_block(t);
    } else {
        acknowledge(t);
    }
}

static void on_request(int socket)
{
    uint8_t p[65536];
    struct sockaddr_in peer;
    socklen_t peer_length = sizeof peer;
    ssize_t received = recvfrom(socket, p, sizeof p, MSG_DONTWAIT, (struct sockaddr *)&peer, &peer_length);
    if (received < 0 || received > BLOCK + HEADER) return;
    size_t length = (size_t)received;
    unsigned op = opcode(p, length);
    struct transfer *idle = NULL;
    if (op != RRQ && op != WRQ) return;
    for (int k = 0; k < TRANSFERS; k++) {
        if (transfers[k].state == IDLE) idle = &transfers[k];
        /* A second request of a peer that is being served is a duplicate. */
        else if (same_peer(&transfers[k].peer, &peer)) return;
    }
    /* Without a free transfer the request is dropped: its client repeats it. */
    if (!idle) return;
    size_t name_end = end(p, length, 2);
    if (name_end > 2 + NAME || !is(p, length, name_end + 1, "octet")) {
        refuse(socket, &peer, ILLEGAL, "octet mode and short names only");
        return;
    }
    memcpy(idle->name, p + 2, name_end - 2);
    idle->name[name_end - 2] = 0;
    begin(idle, &peer, op, block_size(p, length, end(p, length, name_end + 1) + 1));
}

/* -- running ------------------------------------------------------------------------------------------------------- */

static int open_socket(uint32_t address, uint16_t port)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address), .sin_port = htons(port)};
    int made = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (made < 0 || bind(made, (struct sockaddr *)&place, sizeof place) < 0) {
        perror("tftp: cannot open a port");
        exit(1);
    }
    return made;
}

/* Waits for packets and timeouts, and handles them. */
static void turn(struct pollfd *watched, int count, int server)
{
    int64_t now = now_ms(), due = INT64_MAX;
    for (int k = 0; k < TRANSFERS; k++) {
        if (transfers[k].state != IDLE && transfers[k].deadline_ms < due) due = transfers[k].deadline_ms;
    }
    int timeout = due == INT64_MAX ? -1 : due <= now ? 0 : (int)(due - now);
    if (poll(watched, (nfds_t)count, timeout) < 0 && errno != EINTR) {
        perror("tftp: cannot wait");
        exit(1);
    }
    for (int i = 0; i < count; i++) {
        if (!watched[i].revents) continue;
        if (watched[i].fd == server) on_request(server);
        else on_packet(&transfers[i]);
    }
    now = now_ms();
    for (int k = 0; k < TRANSFERS; k++) {
        if (transfers[k].state != IDLE && transfers[k].deadline_ms <= now) on_silence(&transfers[k]);
    }
}

_Noreturn static void serve(uint16_t port)
{
    struct pollfd watched[TRANSFERS + 1];
    int server = open_socket(INADDR_LOOPBACK, port);
    for (int k = 0; k < TRANSFERS; k++) {
        transfers[k].socket = open_socket(INADDR_LOOPBACK, 0);
        transfers[k].file = -1;
        watched[k] = (struct pollfd){.fd = transfers[k].socket, .events = POLLIN};
    }
    watched[TRANSFERS] = (struct pollfd){.fd = server, .events = POLLIN};
    for (;;) turn(watched, TRANSFERS + 1, server);
}

static int ask(bool puts, const char *address, uint16_t port, const char *name)
{
    struct transfer *t = &transfers[0];
    t->socket = open_socket(INADDR_ANY, 0);
    t->file = -1;
    t->peer = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    if (strlen(name) > NAME || inet_pton(AF_INET, address, &t->peer.sin_addr) != 1) {
        fprintf(stderr, "tftp: wrong address or name\n");
        return 2;
    }
    strcpy(t->name, name);
    t->size = STANDARD;
    if (puts ? !open_to_read(t) : !open_to_write(t)) {
        perror(name);
        return 1;
    }
    t->state = puts ? ASKING_PUT : ASKING_GET;
    put16(t->packet, puts ? WRQ : RRQ);
    t->length = 2 + (size_t)sprintf((char *)t->packet + 2, "%s%coctet%cblksize%c%d", name, 0, 0, 0, BLOCK) + 1;
    transmit_new(t);
    struct pollfd watched = {.fd = t->socket, .events = POLLIN};
    while (t->state != IDLE) turn(&watched, 1, -1);
    if (t->status) fprintf(stderr, "tftp: %s: %s\n", name, t->reason);
    return t->status;
}

int main(int count, char **words)
{
    folder = open(".", O_DIRECTORY | O_CLOEXEC);
    if (count == 3 && !strcmp(words[1], "serve")) serve((uint16_t)atoi(words[2]));
    if (count == 5 && !strcmp(words[1], "get")) return ask(false, words[2], (uint16_t)atoi(words[3]), words[4]);
    if (count == 5 && !strcmp(words[1], "put")) return ask(true, words[2], (uint16_t)atoi(words[3]), words[4]);
    fprintf(stderr, "usage: tftp serve PORT | get ADDRESS PORT NAME | put ADDRESS PORT NAME\n");
    return 2;
}
