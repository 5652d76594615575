/* hosted.h: the tables by which the main function of hosted.c knows a generated program: its channels, the types of
 * their messages, its waits and faults. `qj build --emit exe` writes them as tables.c. SPDX-License-Identifier: MIT OR
 * Apache-2.0 */
#ifndef QUAJECT_HOSTED_H
#define QUAJECT_HOSTED_H

#include "quaject/esp.h"

typedef enum { QJ_UNSIGNED, QJ_SIGNED, QJ_BOOL, QJ_PID, QJ_BYTES, QJ_ARRAY, QJ_RECORD, QJ_UNION } qj_kind;

/* A field, a tag, a value of a message; for a pid, a process: `offset` is its first instance, `type` its replicas. */
typedef struct qj_part {
    const char *name;
    uint32_t offset;
    int32_t type; /* index into qj_types; -1: a tag without payload */
} qj_part;

typedef struct qj_type {
    qj_kind kind;
    const char *name; /* as written in ESP */
    uint32_t size;    /* bytes in memory */
    uint32_t count;   /* bytes: the bound; array: elements; record, union, pid: parts */
    int32_t element;  /* array: type of the elements */
    uint32_t width;   /* integer: bytes; bytes: bytes of the length, after which the data begin; union: bytes of the tag */
    const qj_part *parts;
} qj_type;

typedef struct qj_channel {
    const char *name;
    const char *driver; /* as declared, else text:- */
    bool from_environment;
    uint32_t size; /* bytes of a message */
    uint32_t count;
    const qj_part *values;
} qj_channel;

/* A fault's name, its cause, and how to avoid it, if known. */
typedef struct qj_fault {
    const char *name, *cause, *help;
} qj_fault;

/* A more precise cause at one location: names a pool or a function. */
typedef struct qj_cause {
    uint32_t code;
    uint32_t file, line, column;
    const char *cause;
} qj_cause;

typedef struct qj_instances_of {
    esp_pid first;
    uint32_t count;
} qj_instances_of;

/* No instance. */
#define QJ_NO_INSTANCE UINT32_MAX

/* An operation or guard that some instances may wait for. */
typedef struct qj_wait {
    esp_pid first;
    uint32_t count;
    uint32_t branch; /* as `open` of esp_library counts */
    esp_pid member;  /* the member of a fused process that waits there, else QJ_NO_INSTANCE */
    uint32_t file, line, column;
    const char *channel, *verb;  /* 0 for a guard that stays false */
    const char *environment;     /* at an external channel: what is waited for instead of partners; or 0 */
    uint32_t partner, partners; /* into qj_partners */
} qj_wait;

extern const qj_fault qj_faults[]; /* by code, from 1 */
extern const qj_cause qj_causes[]; /* ends with code 0 */
extern const qj_wait qj_waits[];   /* ends with count 0 */
extern const qj_instances_of qj_partners[];
extern const qj_type qj_types[];
extern const qj_channel qj_channels[]; /* sources in order, then sinks in order */
extern const uint32_t qj_sources, qj_sinks, qj_instances;
/* Whether each message has to be written before the next step, because extern functions may print. */
extern const bool qj_has_effects;
extern const char *const qj_program_name, *const *const qj_file_names, *const *const qj_instance_names;
/* Names of all channels, by the index in a fault. */
extern const char *const *const qj_channel_names;
extern const esp_library *const qj_program;

#endif
