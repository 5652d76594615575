/* The other side of a ring, in C: `peer write PATH COUNT LENGTH`; `peer WHAT PATH`, which reads (`read`), writes until
 * it is killed (`stuck`), says nothing (`silent`); lies in the ring (`long`, `kind`, `state`), goes in the middle of a
 * message (`half`), or lies when it is met (`small`, `unsealed`, `empty`, `huge`, `none`, `noise`). */
#include <quaject/ring_stream.h>

#include <stdio.h>
#include <stdlib.h>

static void die(const char *what, int result) {
    fprintf(stderr, "%s: %s\n", what, strerror(-result));
    exit(1);
}

/* Message `number` of a stream: its length, and bytes that tell it from all others. */
static size_t fill(unsigned char *bytes, unsigned number, size_t length) {
    for (size_t i = 0; i < length; i++) bytes[i] = (unsigned char)(number * 31 + i);
    return length;
}

static void write_all(struct qj_stream *stream, unsigned count, size_t length) {
    static unsigned char bytes[1 << 20];
    for (unsigned i = 0; i < count; i++) {
        int result = qj_stream_write(stream, bytes, fill(bytes, i, length));
        if (result != 0) die("write", result);
    }
}

/* "count, bytes, sum" of what comes. */
static void read_all(struct qj_stream *stream) {
    static unsigned char bytes[1 << 20];
    unsigned long count = 0, all = 0, sum = 0;
    ssize_t length;
    while ((length = qj_stream_read(stream, bytes, sizeof bytes)) >= 0) {
        count++;
        all += (unsigned long)length;
        for (ssize_t i = 0; i < length; i++) sum = sum * 31 + bytes[i];
    }
    if (length != -EPIPE) die("read", (int)length);
    printf("%lu %lu %lx\n", count, all, sum);
}

/* Listens at the name and answers the first caller with this greeting and this memory, or none. */
static int host(const char *path, uint32_t capacity_log2, int memory, size_t greeting_bytes) {
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path);
    int door = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (bind(door, (struct sockaddr *)&address, sizeof address) != 0 || listen(door, 8) != 0) die("listen", -errno);
    int caller = accept(door, NULL, NULL);
    struct qj_stream_greeting greeting = {QJ_STREAM_MAGIC, QJ_STREAM_WRITER, capacity_log2};
    struct iovec piece = {&greeting, greeting_bytes};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (memory >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &memory, sizeof memory);
    }
    if (sendmsg(caller, &message, 0) < 0) die("greet", -errno);
    unlink(path);
    return caller;
}

static int memory_of(size_t bytes, int seals) {
    int memory = memfd_create("liar", MFD_ALLOW_SEALING);
    if (memory < 0 || ftruncate(memory, (off_t)bytes) != 0 || fcntl(memory, F_ADD_SEALS, seals) != 0) die("memory", -errno);
    return memory;
}

int main(int count, char **arguments) {
    const char *what = arguments[1], *path = arguments[2];
    struct qj_stream stream;
    int reads = count == 3 && strcmp(what, "read") == 0;
    int sized = F_SEAL_SHRINK | F_SEAL_GROW;
    if (strcmp(what, "small") == 0) host(path, 10, memory_of(4096, sized), 16);
    if (strcmp(what, "unsealed") == 0) host(path, 10, memory_of(qj_ring_bytes(10), F_SEAL_GROW), 16);
    if (strcmp(what, "empty") == 0) host(path, 10, memory_of(qj_ring_bytes(10), sized), 16);
    if (strcmp(what, "huge") == 0) host(path, 40, memory_of(qj_ring_bytes(10), sized), 16);
    if (strcmp(what, "none") == 0) host(path, 10, -1, 16);
    if (strcmp(what, "noise") == 0) host(path, 10, -1, 7);
    if (strstr("small unsealed empty huge none noise", what) != NULL) return poll(NULL, 0, 30000);
    int result = qj_stream_open(&stream, path, reads ? QJ_STREAM_READER : QJ_STREAM_WRITER, 4);
    if (result != 0) die("open", result);
    struct qj_ring_message slot;
    memset(&slot, 0, sizeof slot);
    slot.words[0] = (uint64_t)1 << 32;
    if (reads) {
        read_all(&stream);
    } else if (strcmp(what, "write") == 0) {
        write_all(&stream, (unsigned)atoi(arguments[3]), (size_t)atoi(arguments[4]));
    } else if (strcmp(what, "stuck") == 0) {
        for (;;) write_all(&stream, 1000, 100);
    } else if (strcmp(what, "long") == 0) {
        slot.words[0] |= 0xffffffff;
        qj_stream__push_wait(&stream, &slot, 1);
    } else if (strcmp(what, "kind") == 0) {
        slot.words[0] = ~(uint64_t)0;
        qj_stream__push_wait(&stream, &slot, 1);
    } else if (strcmp(what, "half") == 0) {
        slot.words[0] |= 50; /* two slots, of which one comes */
        qj_stream__push_wait(&stream, &slot, 1);
        qj_stream_close(&stream);
        return 0;
    } else if (strcmp(what, "state") == 0) {
        /* Every slot, the hints and the bells hold anything. */
        uint64_t *words = (uint64_t *)stream.memory;
        for (size_t i = 16; i < stream.bytes / 8; i++) words[i] = 0x9e3779b97f4a7c15u * (i + 1);
        if (send(stream.line, "", 1, 0) < 0) die("bell", -errno);
    }
    if (strstr("long kind state silent", what) != NULL) return poll(NULL, 0, 30000);
    qj_stream_close(&stream);
    return 0;
}
