/* Streams of messages from one process to another, over a ring in shared memory (quaject/ring.h): of any length, in
 * order, complete. One process writes, one reads; they connect by a name in the file system. The driver `ring:` of `qj
 * run` uses the same protocol. C11 and C++17, Linux; no library. Compile with -D_GNU_SOURCE (C++ compilers do).
 *
 *     struct qj_stream stream;                                    the other process: `qj run --bind c=ring:/dev/shm/s`
 *     qj_stream_open(&stream, "/dev/shm/s", QJ_STREAM_WRITER, 10);    ..., QJ_STREAM_READER, 10
 *     qj_stream_write(&stream, "hello", 5);                           qj_stream_read(&stream, bytes, sizeof bytes) == 5
 *     qj_stream_close(&stream);                                       qj_stream_read(...) == -EPIPE
 *
 * The shared memory carries the messages. The socket by which the two connected carries wake-ups: one byte wakes a
 * sleeping end, so that one poll() waits for it and for other descriptors. The kernel closes the socket when its
 * process ends for any reason. The memory is a sealed anonymous file, which no peer can truncate.
 *
 *   first                                     second
 *   makes the ring, listens at the name       connects (SOCK_SEQPACKET)
 *                          <--- greeting ---  magic: 64 bits | 1 for the reader, 2 for the writer: 32 bits | 0: 32 bits
 *                          --- greeting -->   the same of the first, with log2 of the slots and the memory (SCM_RIGHTS)
 *   removes the name       <---   bell   -->  one byte: poll the ring again
 *
 *   slots of a message     first  kind << 32 | length, 48 bytes of it          kind 1: a message, 2: the end (length 0)
 *                          others 56 bytes of it
 *
 * The peer is not trusted: its data cause no access outside of the ring or of the reader's buffer. */
#ifndef QUAJECT_RING_STREAM_H
#define QUAJECT_RING_STREAM_H

#include <quaject/ring.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QJ_STREAM_READER 1u
#define QJ_STREAM_WRITER 2u
#define QJ_STREAM_MAGIC 0x314d525453524a51u /* "QJRSTRM1" */
#define QJ_STREAM_CAPACITY_LOG2_MAX 18u

struct qj_stream_greeting {
    uint64_t magic;
    uint32_t role;
    uint32_t capacity_log2;
};

/* One end. `line` becomes readable when the peer has acted after a call has returned -EAGAIN, and when it has
 * closed. */
struct qj_stream {
    struct qj_ring_end end;
    void *memory;
    size_t bytes;
    int line;
    uint32_t role;
    int parted; /* the peer has closed */
    int ended;  /* the writer has said that there is no more */
};

static inline int qj_stream__fail(int descriptor, int error) {
    if (descriptor >= 0) close(descriptor);
    return -error;
}

/* Maps the memory and takes our end of the ring. */
static inline int qj_stream__map(struct qj_stream *stream, int memory, unsigned capacity_log2, int is_new) {
    struct stat status;
    int seals = fcntl(memory, F_GET_SEALS);
    size_t bytes = qj_ring_bytes(capacity_log2);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(memory, &status) != 0 || status.st_size < (off_t)bytes)
        return -EPROTO;
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (start == MAP_FAILED) return -errno;
    if ((is_new && qj_ring_create(start, bytes, capacity_log2, QJ_RING_SP_SC) != QJ_RING_OK) ||
        qj_ring_attach(&stream->end, start, bytes, capacity_log2, QJ_RING_SP_SC, 1) != QJ_RING_OK ||
        (stream->role == QJ_STREAM_WRITER ? qj_ring_resume_producer(&stream->end)
                                          : qj_ring_resume_consumer(&stream->end)) != QJ_RING_OK) {
        munmap(start, bytes);
        return -EPROTO;
    }
    stream->memory = start;
    stream->bytes = bytes;
    return 0;
}

/* The lock of the folder that holds the name. */
static inline int qj_stream__lock(const char *path) {
    char folder[sizeof ((struct sockaddr_un *)0)->sun_path];
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path);
    if (slash == NULL) {
        strcpy(folder, ".");
    } else {
        memcpy(folder, path, length);
        strcpy(folder + length, length == 0 ? "/" : "");
    }
    int lock = open(folder, O_RDONLY | O_CLOEXEC);
    if (lock < 0) return -errno;
    while (flock(lock, LOCK_EX) != 0) {
        if (errno != EINTR) return qj_stream__fail(lock, errno);
    }
    return lock;
}

/* Accepts the other side at the name and sends it the memory. */
static inline int qj_stream__host(struct qj_stream *stream, int door, int memory, unsigned capacity_log2) {
    for (;;) {
        int caller = accept4(door, NULL, NULL, SOCK_CLOEXEC);
        if (caller < 0) {
            if (errno == EINTR || errno == ECONNABORTED) continue;
            return -errno;
        }
        /* A connection that sends nothing must not block the others. */
        struct pollfd asked;
        asked.fd = caller;
        asked.events = POLLIN;
        struct qj_stream_greeting greeting = {0, 0, 0};
        int is_peer = poll(&asked, 1, 1000) == 1 && recv(caller, &greeting, sizeof greeting, MSG_DONTWAIT | MSG_TRUNC) ==
                                                        (ssize_t)sizeof greeting &&
                      greeting.magic == QJ_STREAM_MAGIC && greeting.role != stream->role &&
                      (greeting.role == QJ_STREAM_READER || greeting.role == QJ_STREAM_WRITER);
        struct qj_stream_greeting ours = {QJ_STREAM_MAGIC, stream->role, capacity_log2};
        struct iovec piece = {&ours, sizeof ours};
        union {
            struct cmsghdr header;
            char bytes[CMSG_SPACE(sizeof(int))];
        } control;
        struct msghdr message;
        memset(&message, 0, sizeof message);
        memset(&control, 0, sizeof control);
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        if (is_peer) {
            message.msg_control = &control;
            message.msg_controllen = sizeof control;
            struct cmsghdr *header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof(int));
            memcpy(CMSG_DATA(header), &memory, sizeof memory);
        }
        /* The greeting informs a process with the same role that it is refused. */
        if (sendmsg(caller, &message, MSG_NOSIGNAL) == (ssize_t)sizeof ours && is_peer) return caller;
        close(caller);
    }
}

/* Receives the memory from the first side. -ECONNRESET: it has connected to another process, or has closed. */
static inline int qj_stream__join(struct qj_stream *stream) {
    struct qj_stream_greeting ours = {QJ_STREAM_MAGIC, stream->role, 0}, theirs = {0, 0, 0};
    struct iovec piece = {&theirs, sizeof theirs};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message;
    memset(&message, 0, sizeof message);
    memset(&control, 0, sizeof control);
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    if (send(stream->line, &ours, sizeof ours, MSG_NOSIGNAL) < 0) return -ECONNRESET;
    ssize_t length;
    while ((length = recvmsg(stream->line, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {}
    if (length <= 0) return -ECONNRESET;
    int memory = -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&memory, CMSG_DATA(header), sizeof memory);
    if (length != (ssize_t)sizeof theirs || theirs.magic != QJ_STREAM_MAGIC) return qj_stream__fail(memory, EPROTO);
    if (theirs.role == stream->role) return qj_stream__fail(memory, EBUSY);
    if (memory < 0 || theirs.capacity_log2 > QJ_STREAM_CAPACITY_LOG2_MAX) return qj_stream__fail(memory, EPROTO);
    int result = qj_stream__map(stream, memory, theirs.capacity_log2, 0);
    close(memory);
    return result;
}

/* Opens the stream of this name and waits for the other side. The first side creates the ring, of 2^capacity_log2 slots
 * of 64 bytes. Returns 0, or -EBUSY if the role is taken, -EPROTO if the name belongs to something else than a ring, or
 * -errno. */
static inline int qj_stream_open(struct qj_stream *stream, const char *path, uint32_t role, unsigned capacity_log2) {
    struct sockaddr_un address;
    memset(stream, 0, sizeof *stream);
    memset(&address, 0, sizeof address);
    stream->line = -1;
    stream->role = role;
    if (capacity_log2 > QJ_STREAM_CAPACITY_LOG2_MAX || (role != QJ_STREAM_READER && role != QJ_STREAM_WRITER))
        return -EINVAL;
    if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path);
    for (int losses = 0;; losses++) {
        struct stat status;
        int lock = qj_stream__lock(path);
        if (lock < 0) return lock;
        stream->line = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (stream->line < 0) return qj_stream__fail(lock, errno);
        if (connect(stream->line, (struct sockaddr *)&address, sizeof address) == 0) {
            close(lock);
            int result = qj_stream__join(stream);
            if (result == 0) return 0;
            close(stream->line);
            stream->line = -1;
            if (result != -ECONNRESET || losses >= 64) return result;
            continue;
        }
        int error = errno;
        /* A socket without a listener, left by a killed process, is replaced. */
        if (error == ECONNREFUSED && lstat(path, &status) == 0)
            error = S_ISSOCK(status.st_mode) && unlink(path) == 0 ? ENOENT : EPROTO;
        if (error == EPROTOTYPE) error = EPROTO;
        int memory = -1;
        if (error == ENOENT) {
            size_t bytes = qj_ring_bytes(capacity_log2);
            memory = memfd_create("quaject", MFD_CLOEXEC | MFD_ALLOW_SEALING);
            error = 0;
            if (memory < 0 || ftruncate(memory, (off_t)bytes) != 0 ||
                fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
                error = errno;
            else
                error = -qj_stream__map(stream, memory, capacity_log2, 1);
            if (error == 0 && (bind(stream->line, (struct sockaddr *)&address, sizeof address) != 0 ||
                               listen(stream->line, 8) != 0))
                error = errno;
        }
        close(lock);
        int line = error == 0 ? qj_stream__host(stream, stream->line, memory, capacity_log2) : -error;
        if (error == 0) unlink(path);
        close(stream->line);
        if (memory >= 0) close(memory);
        stream->line = line;
        if (line < 0 && stream->memory != NULL) {
            munmap(stream->memory, stream->bytes);
            stream->memory = NULL;
        }
        return line < 0 ? line : 0;
    }
}

static inline void qj_stream_close(struct qj_stream *stream) {
    if (stream->memory != NULL) munmap(stream->memory, stream->bytes);
    if (stream->line >= 0) close(stream->line);
    stream->memory = NULL;
    stream->line = -1;
}

/* Consumes wake-ups and detects that the peer has closed. */
static inline void qj_stream__listen(struct qj_stream *stream) {
    char bell;
    for (int i = 0; i < 64 && !stream->parted; i++) {
        ssize_t length = recv(stream->line, &bell, 1, MSG_DONTWAIT);
        if (length < 0 && errno == EINTR) continue;
        if (length < 0 && errno == EAGAIN) return;
        if (length <= 0) stream->parted = 1;
    }
}
static inline void qj_stream__ring(struct qj_stream *stream, uint32_t *bell) {
    /* If the socket is full, the peer has a wake-up already; a closed socket is detected by qj_stream__listen(). */
    if (qj_bell_ring(bell) && send(stream->line, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {}
}
/* Sleeps until the peer acts or has closed. */
static inline void qj_stream__sleep(struct qj_stream *stream) {
    struct pollfd asked;
    asked.fd = stream->line;
    asked.events = POLLIN;
    if (poll(&asked, 1, -1) < 0) {}
}

/* Inserts all slots or none: 0, -EAGAIN, -EPIPE when the reader has closed, -EPROTO. */
static inline int qj_stream__push(struct qj_stream *stream, const struct qj_ring_message *slots, uint32_t count) {
    for (int armed = 0;; armed = 1) {
        enum qj_ring_result result = qj_ring_sp_push_many(&stream->end, slots, count);
        if (result == QJ_RING_OK) {
            qj_stream__ring(stream, &stream->end.ring->consumer_bell);
            return 0;
        }
        if (result != QJ_RING_NOT_READY) return -EPROTO;
        if (armed) return stream->parted ? -EPIPE : -EAGAIN;
        qj_stream__listen(stream);
        qj_bell_arm(&stream->end.ring->producer_bell);
    }
}
/* The same, waiting. */
static inline int qj_stream__push_wait(struct qj_stream *stream, const struct qj_ring_message *slots, uint32_t count) {
    int result;
    while ((result = qj_stream__push(stream, slots, count)) == -EAGAIN) qj_stream__sleep(stream);
    return result;
}
/* How many slots are inserted at once. */
static inline uint32_t qj_stream__max_insert(const struct qj_stream *stream) {
    uint32_t capacity = stream->end.mask + 1;
    return capacity < QJ_RING_SPAN_MAX ? capacity : QJ_RING_SPAN_MAX;
}

/* Writes a message, waiting for room: 0, -EPIPE when the reader has closed, -EPROTO, -EMSGSIZE. A message of at most 32
 * slots (1,784 bytes) that fits the ring is inserted completely or not at all, also when the writer is killed. */
static inline int qj_stream_write(struct qj_stream *stream, const void *bytes, size_t length) {
    const char *from = (const char *)bytes;
    struct qj_ring_message slots[QJ_RING_SPAN_MAX];
    uint32_t longest = qj_stream__max_insert(stream), count = 0;
    size_t room = 48, at = 0;
    if (length > UINT32_MAX) return -EMSGSIZE;
    qj_stream__listen(stream);
    if (stream->parted) return -EPIPE;
    do {
        size_t piece = length - at < room ? length - at : room;
        memset(&slots[count], 0, sizeof slots[count]);
        if (room == 48) slots[count].words[0] = (uint64_t)1 << 32 | length;
        if (piece > 0) memcpy((char *)slots[count].words + 56 - room, from + at, piece);
        room = 56;
        at += piece;
        count++;
        if (count == longest || at == length) {
            int result = qj_stream__push_wait(stream, slots, count);
            if (result != 0) return result;
            count = 0;
        }
    } while (at < length);
    return 0;
}
/* Ends the stream. Closing ends it too. */
static inline int qj_stream_end(struct qj_stream *stream) {
    struct qj_ring_message slot;
    memset(&slot, 0, sizeof slot);
    slot.words[0] = (uint64_t)2 << 32;
    return qj_stream__push_wait(stream, &slot, 1);
}

/* Takes a slot: 0, -EAGAIN, -EPIPE when the writer has closed, -EPROTO. */
static inline int qj_stream__pop(struct qj_stream *stream, struct qj_ring_message *slot) {
    for (int armed = 0;; armed = 1) {
        enum qj_ring_result result = qj_ring_sc_pop(&stream->end, slot);
        if (result == QJ_RING_OK) {
            qj_stream__ring(stream, &stream->end.ring->producer_bell);
            return 0;
        }
        if (result != QJ_RING_NOT_READY) return -EPROTO;
        if (armed) return stream->parted ? -EPIPE : -EAGAIN;
        /* In this order: what the writer pushed before it closed is seen by the next attempt. */
        qj_stream__listen(stream);
        qj_bell_arm(&stream->end.ring->consumer_bell);
    }
}
static inline int qj_stream__pop_wait(struct qj_stream *stream, struct qj_ring_message *slot) {
    int result;
    while ((result = qj_stream__pop(stream, slot)) == -EAGAIN) qj_stream__sleep(stream);
    return result;
}
static inline ssize_t qj_stream__read_rest(struct qj_stream *stream, struct qj_ring_message *slot, char *to, size_t room) {
    uint64_t kind = slot->words[0] >> 32;
    size_t length = (uint32_t)slot->words[0], at = length < 48 ? length : 48;
    if (kind == 2 && length == 0) stream->ended = 1;
    if (stream->ended) return -EPIPE;
    if (kind != 1) return -EPROTO;
    if (length > room) return -EMSGSIZE;
    if (at > 0) memcpy(to, &slot->words[1], at);
    while (at < length) {
        int result = qj_stream__pop_wait(stream, slot);
        if (result != 0) return result == -EPIPE ? -ECONNRESET : result;
        size_t piece = length - at < 56 ? length - at : 56;
        memcpy(to + at, slot->words, piece);
        at += piece;
    }
    return (ssize_t)length;
}

/* Reads a message, waiting for it: its length, or -EPIPE at the end (the writer has ended or closed), -ECONNRESET when
 * the writer has closed in the middle of a message, -EMSGSIZE when it is longer than `room`, -EPROTO when the ring
 * violates the protocol. After -EMSGSIZE and -EPROTO the stream cannot be used any more. */
static inline ssize_t qj_stream_read(struct qj_stream *stream, void *to, size_t room) {
    struct qj_ring_message slot;
    if (stream->ended) return -EPIPE;
    int result = qj_stream__pop_wait(stream, &slot);
    return result != 0 ? result : qj_stream__read_rest(stream, &slot, (char *)to, room);
}
/* The same, or -EAGAIN when no message has begun; `line` becomes readable when one may have. */
static inline ssize_t qj_stream_try_read(struct qj_stream *stream, void *to, size_t room) {
    struct qj_ring_message slot;
    if (stream->ended) return -EPIPE;
    int result = qj_stream__pop(stream, &slot);
    return result != 0 ? result : qj_stream__read_rest(stream, &slot, (char *)to, room);
}

#ifdef __cplusplus
}
#endif

#endif
