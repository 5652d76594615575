/* Code memory of the paper's names: blocks in chunks that are mapped twice, once writable and once executable, so that
   no mapping is both. A block is allocated and freed in a few instructions; pages that were never written take no
   memory.

   A forked child has a copy of its own, at the same addresses: neither process can write what the other executes. The
   handlers that see to it run at `fork`, not at a raw `clone`, whose child cannot write code memory. If the system has no
   more files for the copy, the child has no code memory: a call of a generated function ends it with a fault, and
   v_code_new returns null. */
#ifndef QUAJECT_VCODE_CODE_MEMORY_H
#define QUAJECT_VCODE_CODE_MEMORY_H

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__STRICT_ANSI__) && !defined(__cplusplus)
/* In strict C the system's headers declare them only under feature-test macros, which would have to precede any
 * header. */
long syscall(long number, ...);
int ftruncate(int file, off_t length);
int madvise(void *at, size_t length, int advice);
#endif

/* The head of a block; the code is behind it. */
struct v_code {
    uint64_t magic;
    struct v_code *self;
    struct qjv_chunk *chunk;
    size_t length;
};

#define QJV_MAGIC UINT64_C(0x71756a5f636f6465)
enum {
    QJV_PAGE = 4096,
    /* The least length of a block: v_begin writes so much without a check. */
    QJV_WINDOW = 1024,
    QJV_CHUNK = 1 << 20,
    /* Lengths are multiples of a quarter of a power of two: so many from QJV_WINDOW up to half a chunk. */
    QJV_CLASSES = 4 * 9 + 1,
    /* Linux's values, which strict C hides. */
#if defined(__mips__)
    QJV_MAP_ANONYMOUS = 0x800,
#elif defined(__alpha__)
    QJV_MAP_ANONYMOUS = 0x10,
#else
    QJV_MAP_ANONYMOUS = 0x20,
#endif
#if defined(__alpha__)
    QJV_MAP_FIXED_NOREPLACE = 0x200000,
#else
    QJV_MAP_FIXED_NOREPLACE = 0x100000,
#endif
    QJV_MADV_DONTFORK = 10
};

/* Memory that is mapped twice, and the next of the pool. Larger blocks have one each. */
struct qjv_chunk {
    struct qjv_pool *pool;
    struct qjv_chunk *next, **link;
    uint8_t *write, *execute;
    size_t length, used;
    /* In a fork: the file with the child's copy, or -1. */
    int snapshot;
};

struct qjv_pool {
    char lock, has_handlers;
    /* A child without code memory. */
    char is_lost;
    struct qjv_chunk *chunks;
    /* The one that new blocks are taken from. */
    struct qjv_chunk *current;
    /* Freed blocks by the class of their length; the next one is in place of `self`. */
    struct v_code *freed[QJV_CLASSES];
};

/* The pool of this source file. A block returns to its own pool, wherever it is freed. */
QJV_OUTLINE struct qjv_pool *qjv_pool(void) {
    static struct qjv_pool pool;
    return &pool;
}

QJV_INLINE void qjv_lock_pool(struct qjv_pool *pool) {
    while (__atomic_test_and_set(&pool->lock, __ATOMIC_ACQUIRE)) sched_yield();
}

QJV_INLINE void qjv_unlock_pool(struct qjv_pool *pool) { __atomic_clear(&pool->lock, __ATOMIC_RELEASE); }

/* A memory file of this length, or -1. */
QJV_OUTLINE int qjv_memory_file(size_t length) {
    int file = (int)syscall(SYS_memfd_create, "quaject-code", 1u);
    if (file >= 0 && ftruncate(file, (off_t)length) != 0) {
        close(file);
        file = -1;
    }
    return file;
}

/* Before a fork: copies the chunks to files that the parent does not map. */
QJV_OUTLINE void qjv_before_fork(void) {
    struct qjv_chunk *chunk;
    qjv_lock_pool(qjv_pool());
    for (chunk = qjv_pool()->chunks; chunk; chunk = chunk->next) {
        size_t done = 0;
        chunk->snapshot = qjv_memory_file(chunk->length);
        while (chunk->snapshot >= 0 && done < chunk->used) {
            ssize_t written = write(chunk->snapshot, chunk->execute + done, chunk->used - done);
            if (written > 0) {
                done += (size_t)written;
            } else {
                close(chunk->snapshot);
                chunk->snapshot = -1;
            }
        }
    }
}

QJV_OUTLINE void qjv_after_fork(void) {
    struct qjv_chunk *chunk;
    for (chunk = qjv_pool()->chunks; chunk; chunk = chunk->next) {
        if (chunk->snapshot >= 0) close(chunk->snapshot);
    }
    qjv_unlock_pool(qjv_pool());
}

/* In a child: maps the copies over both views. */
QJV_OUTLINE void qjv_in_child(void) {
    struct qjv_chunk *chunk;
    for (chunk = qjv_pool()->chunks; chunk; chunk = chunk->next) {
        void *execute = MAP_FAILED, *write = MAP_FAILED;
        if (chunk->snapshot >= 0) {
            execute = mmap(chunk->execute, chunk->length, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, chunk->snapshot, 0);
            write = mmap(chunk->write, chunk->length, PROT_READ | PROT_WRITE, MAP_SHARED | QJV_MAP_FIXED_NOREPLACE,
                         chunk->snapshot, 0);
        }
        if (execute != MAP_FAILED && write == (void *)chunk->write) {
            madvise(write, chunk->length, QJV_MADV_DONTFORK);
            continue;
        }
        if (write != MAP_FAILED) munmap(write, chunk->length);
        mmap(chunk->execute, chunk->length, PROT_NONE, MAP_PRIVATE | QJV_MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        qjv_pool()->is_lost = 1;
    }
    qjv_after_fork();
}

/* A chunk of at least so many bytes, or null; the pool is locked. */
QJV_OUTLINE struct qjv_chunk *qjv_new_chunk(size_t length) {
    struct qjv_pool *pool = qjv_pool();
    /* Not in the views: in a child it is read before they are mapped. */
    void *own = mmap(0, QJV_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | QJV_MAP_ANONYMOUS, -1, 0);
    struct qjv_chunk *chunk = own == MAP_FAILED ? 0 : (struct qjv_chunk *)own;
    void *write = MAP_FAILED, *execute = MAP_FAILED;
    int file = -1;
    length = (length + QJV_PAGE - 1) & ~(size_t)(QJV_PAGE - 1);
    if (!pool->has_handlers) pool->has_handlers = pthread_atfork(qjv_before_fork, qjv_after_fork, qjv_in_child) == 0;
    if (chunk && pool->has_handlers) file = qjv_memory_file(length);
    if (file >= 0) {
        write = mmap(0, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        execute = mmap(0, length, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
        close(file);
    }
    if (write == MAP_FAILED || execute == MAP_FAILED) {
        if (write != MAP_FAILED) munmap(write, length);
        if (execute != MAP_FAILED) munmap(execute, length);
        if (chunk) munmap(chunk, QJV_PAGE);
        return 0;
    }
    madvise(write, length, QJV_MADV_DONTFORK);
    chunk->pool = pool;
    chunk->write = (uint8_t *)write;
    chunk->execute = (uint8_t *)execute;
    chunk->length = length;
    chunk->used = 0;
    chunk->snapshot = -1;
    chunk->next = pool->chunks;
    chunk->link = &pool->chunks;
    if (chunk->next) chunk->next->link = &chunk->next;
    pool->chunks = chunk;
    return chunk;
}

/* The class of a length, and the length of all blocks of the class. */
QJV_OUTLINE unsigned qjv_length_class(size_t *length) {
    unsigned doublings = 0;
    size_t power = QJV_WINDOW, quarters;
    while (2 * power <= *length) power *= 2, doublings++;
    quarters = *length <= power ? 0 : (*length - power + power / 4 - 1) / (power / 4);
    *length = power + quarters * (power / 4);
    return 4 * doublings + (unsigned)quarters;
}

/* Memory for one function of so many bytes; null if the system refuses. Several threads may allocate and free. */
QJV_OUTLINE struct v_code *v_code_new(size_t bytes) {
    struct qjv_pool *pool = qjv_pool();
    struct v_code *code = 0;
    struct qjv_chunk *chunk;
    size_t length = bytes + sizeof *code + QJV_PROLOGUE + QJV_SLACK;
    if (bytes > SIZE_MAX / 2) return 0;
    qjv_lock_pool(pool);
    if (pool->is_lost) {
        qjv_unlock_pool(pool);
        return 0;
    }
    if (length > QJV_CHUNK / 2) {
        chunk = qjv_new_chunk(length);
        if (chunk) length = chunk->length;
    } else {
        unsigned class_ = qjv_length_class(&length);
        code = pool->freed[class_];
        chunk = code ? code->chunk : pool->current;
        if (code) {
            pool->freed[class_] = code->self;
        } else if (!chunk || chunk->length - chunk->used < length) {
            chunk = qjv_new_chunk(QJV_CHUNK);
            if (chunk) pool->current = chunk;
        }
    }
    if (chunk && !code) {
        code = (struct v_code *)(chunk->write + chunk->used);
        chunk->used += length;
    }
    if (code) {
        code->magic = QJV_MAGIC;
        code->self = code;
        code->chunk = chunk;
        code->length = length;
    }
    qjv_unlock_pool(pool);
    return code;
}

/* Frees memory from v_code_new; its function must not be called any more. Null has no effect. */
QJV_OUTLINE void v_code_free(struct v_code *code) {
    struct qjv_chunk *chunk;
    struct qjv_pool *pool;
    size_t length;
    if (!code || qjv_pool()->is_lost) return;
    chunk = code->chunk;
    pool = chunk->pool;
    length = code->length;
    qjv_lock_pool(pool);
    if (length > QJV_CHUNK / 2) {
        *chunk->link = chunk->next;
        if (chunk->next) chunk->next->link = chunk->link;
        munmap(chunk->execute, chunk->length);
        munmap(chunk->write, chunk->length);
        munmap(chunk, QJV_PAGE);
    } else {
        unsigned class_ = qjv_length_class(&length);
        code->self = pool->freed[class_];
        pool->freed[class_] = code;
    }
    qjv_unlock_pool(pool);
}

#endif
