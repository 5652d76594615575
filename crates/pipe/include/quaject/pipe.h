/* Copy, checksum, byte swap and other steps over data, composed at run time into one pass over memory.
 *
 *     struct qj_pipe *pipe;
 *     int status = qj_pipe_of_text("copy | checksum | swap32", NULL, &pipe);
 *     struct qj_runner *runner = qj_runner_new(pipe);
 *     const struct qj_pipe_report *report;
 *     status = qj_runner_run(runner, source, target, bytes, NULL, &report);
 *     uint16_t checksum;
 *     qj_pipe_checksum(report, &checksum);               as a header holds it
 *     qj_runner_free(runner);
 *     qj_pipe_free(pipe);
 *
 * Functions that return an int return QJ_PIPE_OK or the code of an error; qj_pipe_message() then says more. Pointers
 * must be valid, and may be null only where that is said. A pipe may be used by many threads at once; a runner and a
 * handler by one at a time. Link with -lquaject-pipe; pkg-config knows the rest. */
#ifndef QUAJECT_PIPE_H
#define QUAJECT_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    QJ_PIPE_OK = 0,
    QJ_PIPE_STEPS = 1,         /* P0101: more than QJ_PIPE_MAX_STEPS */
    QJ_PIPE_KEY = 2,           /* P0102: a repeated key is not 1, 2, 4 or 8 bytes long */
    QJ_PIPE_TOO_MANY_STREAMS = 3, /* P0103: more than 4 steps want a key stream */
    QJ_PIPE_WIDE = 4,          /* P0104: elements or numbers of 64 bits on a machine of 32 */
    QJ_PIPE_INSTRUCTIONS = 5,  /* P0105: user-defined steps are too long together */
    QJ_PIPE_TARGET = 6,        /* P0201: the targets are not as long as the sources */
    QJ_PIPE_OVERLAP = 7,       /* P0202: source and target share bytes and are not the same ones */
    QJ_PIPE_STREAMS = 8,       /* P0203: not as many key streams as steps that want one */
    QJ_PIPE_STREAM_LENGTH = 9, /* P0204: a key stream is shorter than the data */
    QJ_PIPE_BUFFERS = 10,      /* P0205: not as many buffers as the handler was made for */
    QJ_PIPE_PIECE = 11,        /* P0206: a piece after one that was no multiple of 8 bytes */
    QJ_PIPE_CODE = 12,         /* P0301: the code cannot be written: no memory for it */
    QJ_PIPE_TEXT = 13,         /* a text is wrong: line, column, the way out */
    QJ_PIPE_ENCODING = 14,     /* a text is not UTF-8 */
    QJ_PIPE_UNKNOWN = 15,      /* there is no definition of this name, no step of this kind */
    QJ_PIPE_VERIFY = 16        /* the verifier rejects a handler */
};

enum { QJ_PIPE_MAX_STEPS = 8 };

/* Deprecated names, for one version. */
#define QJ_PIPE_MOST_STEPS QJ_PIPE_MAX_STEPS
#define QJ_PIPE_FLAW QJ_PIPE_VERIFY
#define QJ_STEP_OWN QJ_STEP_USER
#define QJ_PIPE_MOST_STREAMS QJ_PIPE_TOO_MANY_STREAMS

/* The message and help text of the last failure of a function in this thread: valid until the next failure. Empty if
 * none has failed. */
const char *qj_pipe_message(void);

/* -- Definitions -- */

/* User-defined steps and handlers. */
struct qj_definitions;

/* Reads text such as
 *
 *     step bump u32be
 *       add r0, r0, 1
 *       total max r0
 *     end
 *
 * The book's chapter on pipes defines the language. All errors are reported at once, each on a line. */
int qj_definitions_read(const char *text, struct qj_definitions **);
/* May be null. Pipes and handlers that were made with them stay valid. */
void qj_definitions_free(struct qj_definitions *);

/* -- Pipes -- */

/* Steps composed into one function. */
struct qj_pipe;

enum qj_step_kind {
    QJ_STEP_COPY,       /* writes the data to the target as they are */
    QJ_STEP_CHECKSUM,   /* the Internet checksum (RFC 1071) of the data at this place */
    QJ_STEP_CRC32C,     /* CRC-32C (RFC 3720) of the data at this place */
    QJ_STEP_SWAP16,     /* reverses the bytes of every 2 */
    QJ_STEP_SWAP32,     /* of every 4 */
    QJ_STEP_SWAP64,     /* of every 8 */
    QJ_STEP_XOR,        /* exclusive or with a key that repeats: the first `key_bytes` of `key` */
    QJ_STEP_XOR_STREAM, /* exclusive or with a key stream that is given with each run */
    QJ_STEP_COUNT,      /* counts bytes */
    QJ_STEP_USER        /* the step called `name` of the definitions */
};

/* Steps are applied in order: a checksum before a swap is that of the input bytes. Members that a kind does not need
 * are ignored. */
struct qj_step {
    int kind;
    unsigned char key[8];
    size_t key_bytes;
    const char *name;
};

/* Composes steps. Definitions may be null if no step is user-defined. */
int qj_pipe_of_steps(const struct qj_step *, size_t count, const struct qj_definitions *, struct qj_pipe **);
/* Composes a text such as "copy | checksum | xor 0x37fa213d". Definitions may be null. */
int qj_pipe_of_text(const char *text, const struct qj_definitions *, struct qj_pipe **);
/* May be null. Runners stay valid. */
void qj_pipe_free(struct qj_pipe *);

/* Whether it writes to a target. A pipe that only observes takes a null target. */
bool qj_pipe_writes(const struct qj_pipe *);
/* The number of key streams of a run. */
size_t qj_pipe_streams(const struct qj_pipe *);
/* Its machine code as text. Free it with qj_pipe_text_free(). Null after an error: see qj_pipe_message(). */
char *qj_pipe_explain(const struct qj_pipe *);
/* May be null. */
void qj_pipe_text_free(char *);

/* -- Runs -- */

/* The kinds of results of steps. */
enum qj_finding { QJ_FOUND_NOTHING, QJ_FOUND_CHECKSUM, QJ_FOUND_CRC32C, QJ_FOUND_COUNT, QJ_FOUND_TOTAL };

/* By step, in order. A checksum is the sum itself, not complemented, as the number whose bytes are in network order. */
struct qj_pipe_report {
    uint64_t numbers[QJ_PIPE_MAX_STEPS];
    uint8_t findings[QJ_PIPE_MAX_STEPS]; /* enum qj_finding */
    uint8_t steps;
    uint8_t first_checksum; /* the first step that makes one; 255 if none does */
};

/* The result of the first step with this kind of result, if there is one. */
static inline bool qj_pipe_found(const struct qj_pipe_report *report, enum qj_finding finding, uint64_t *number) {
    for (unsigned step = 0; step < report->steps; step++) {
        if (report->findings[step] == (uint8_t)finding) {
            *number = report->numbers[step];
            return true;
        }
    }
    return false;
}

/* The number whose bits are a total of floating-point numbers: of `total add.f32`, of `total add.f64`. */
static inline float qj_pipe_f32(uint64_t number) {
    uint32_t bits = (uint32_t)number;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double qj_pipe_f64(uint64_t number) {
    double value;
    memcpy(&value, &number, sizeof value);
    return value;
}

/* The first Internet checksum as a header holds it: complemented. */
static inline bool qj_pipe_checksum(const struct qj_pipe_report *report, uint16_t *checksum) {
    bool found = report->first_checksum < report->steps;
    if (found) *checksum = (uint16_t)~report->numbers[report->first_checksum];
    return found;
}

/* What the caller knows of the location of the data. */
enum qj_temperature {
    QJ_UNKNOWN, /* nothing: the size decides how they are stored */
    QJ_HOT,     /* in a cache, or the target will be read soon */
    QJ_COLD     /* they come from memory, and the target is not read soon */
};

/* The store policy. Streaming requires a target that is a multiple of 8; otherwise it is prefetched instead. */
enum qj_store { QJ_STORE_CHOSEN, QJ_STORE_CACHED, QJ_STORE_PREFETCHING, QJ_STORE_STREAMING };

/* Zero means the default for every member. */
struct qj_run_options {
    int temperature; /* enum qj_temperature */
    int store;       /* enum qj_store; QJ_STORE_CHOSEN, which is zero: by size and temperature */
    /* The keys of the steps with a key stream, in order, each at least as long as the data. */
    const void *const *streams;
    size_t stream_count;
};

/* Runs a pipe again and again, on one thread. */
struct qj_runner;

struct qj_runner *qj_runner_new(const struct qj_pipe *);
/* May be null. */
void qj_runner_free(struct qj_runner *);

/* Runs over `bytes` at `source` and writes as many to `target`, which may be `source` itself, and shares no byte with
 * it otherwise; null if the pipe writes nothing. Options may be null, and so may the place for the report, which is
 * valid until the runner is used again. If an error is returned nothing has been read or written. */
int qj_runner_run(
    struct qj_runner *, const void *source, void *target, size_t bytes, const struct qj_run_options *,
    const struct qj_pipe_report **);

/* A piece of memory: laid out as `struct iovec`. */
struct qj_part {
    void *data;
    size_t bytes;
};

/* The same for data that lie in several places, as if they lay together: targets have as many bytes as sources, and
 * share none with each other, and none with sources except the same byte of the data, to run in place. Sources are not
 * written to. */
int qj_runner_run_parts(
    struct qj_runner *, const struct qj_part *sources, size_t source_count, const struct qj_part *targets,
    size_t target_count, const struct qj_run_options *, const struct qj_pipe_report **);

/* The same for data that arrive in pieces: begin, pieces, end. Every piece but the last is a multiple of 8 bytes; key
 * streams begin where the piece does. A run of another kind discards the pieces. */
void qj_runner_begin(struct qj_runner *);
int qj_runner_piece(
    struct qj_runner *, const void *source, void *target, size_t bytes, const struct qj_run_options *);
const struct qj_pipe_report *qj_runner_end(struct qj_runner *);

/* -- Message handlers -- */

/* A verified program that runs when a message arrives: it reads the message, passes parts of it through pipes to
 * buffers, and may reply, within a limit of fuel. It can access its message, pipes and buffers only, and always
 * terminates. */
struct qj_handler;

/* Verifies the handler called `name` with pipes, whose steps it copies, and a number of buffers. */
int qj_handler_new(
    const struct qj_definitions *, const char *name, const struct qj_pipe *const *pipes, size_t pipe_count,
    size_t buffers, struct qj_handler **);
/* May be null. */
void qj_handler_free(struct qj_handler *);

enum qj_verdict {
    QJ_ACCEPTED,   /* a reply, if it is not empty, is to be sent */
    QJ_DROPPED,    /* by the program */
    QJ_REJECTED,   /* it wanted what is not in the message or does not fit a buffer */
    QJ_OUT_OF_FUEL /* it had not ended when its fuel was used up */
};

struct qj_handled {
    int verdict;        /* enum qj_verdict */
    size_t instruction; /* the instruction that rejected the message, from 0 */
    /* Valid until the handler is used again. No bytes unless the message was accepted. */
    const void *reply;
    size_t reply_bytes;
};

/* Runs on a message. An instruction costs one unit of fuel, and 64 bytes that are delivered or replied another. What
 * was delivered stays where it is, whatever the verdict. Buffers that overlap each other or the message are refused
 * (QJ_PIPE_OVERLAP). */
int qj_handler_run(
    struct qj_handler *, const void *message, size_t bytes, const struct qj_part *buffers, size_t buffer_count,
    uint64_t fuel, struct qj_handled *);

#ifdef __cplusplus
}
#endif

#endif
