//! Preemption of a waiting `pri alt`: a requester that could meet it at a later branch commits an earlier one on the
//! environment or the clock first, in every style, in place or after a search, as reader or as writer. The extern
//! function `ring` makes the environment ready during a step, after the `pri alt` has begun to wait.

use crate::support::check;
use quaject_esp_gen::c::{Options, Style};

/// `p` waits for `stopC` or its partner; when `q` arrives, `stopC` has a message, which goes first.
const REQUESTS: [(&str, &str); 4] = [
    // In place, by a writer.
    (
        "channel c(int);\n\
         process p { var n = 0; while (n < 2) { pri alt { in(stopC, $s) { out(logC, s); n += 1; } \
         in(c, $v) { out(logC, v); n += 1; } } } }\n\
         process q { ring(); out(c, 1); }\n",
        "7\n1\n",
    ),
    // In place, by a reader.
    (
        "channel c(int);\n\
         process p { var n = 0; while (n < 2) { pri alt { in(stopC, $s) { out(logC, s); n += 1; } \
         out(c, 1) { out(logC, 2); n += 1; } } } }\n\
         process q { ring(); in(c, $v); out(logC, v); }\n",
        "7\n1\n2\n",
    ),
    // Found among several readers: `p` has taken the message of `stopC` when `r` gets the other, and says so later.
    (
        "channel c(int) shared;\n\
         process p { pri alt { in(stopC, $s) { out(logC, s); } in(c, $v) { out(logC, v); } } }\n\
         process r[2] { idle in(c, $v); out(logC, 10 + v); }\n\
         process q { ring(); out(c, 1); }\n",
        "11\n7\n",
    ),
    // Found among several writers.
    (
        "channel c(int);\n\
         process p { pri alt { in(stopC, $s) { out(logC, s); } out(c, 1) { out(logC, 2); } } }\n\
         process r[2] { out(c, 10 + int(@)); }\n\
         process q { ring(); in(c, $v); out(logC, v); in(c, $w); out(logC, w); }\n",
        "10\n7\n11\n",
    ),
];

const ENVIRONMENT: &str = "channel stopC(int) external out;\nchannel logC(int) external in;\nextern fn ring();\n";

fn check_all(options: &Options, main: &str) {
    for (program, expected) in REQUESTS {
        check(&format!("{ENVIRONMENT}{program}"), options, main, expected);
    }
}

#[test]
fn an_earlier_branch_is_committed_first_when_polled() {
    check_all(
        &Options::default(),
        r#"#include "program.h"
#include <stdio.h>
static bool rung;
void ring(void) { rung = true; }
bool stopC_ready(void) { return rung; }
void stopC_take(stopC_message *m) { m->v0 = 7; rung = false; }
bool logC_ready(void) { return true; }
void logC_put(const logC_message *m) { printf("%d\n", (int)m->v0); }
int main(void)
{
    static esp_t t;
    esp_init(&t);
    (void)esp_step(&t, 0, 0, 0);
    return 0;
}
"#,
    );
}

#[test]
fn an_earlier_branch_is_committed_first_when_posted() {
    check_all(
        &Options { style: Style::Post { ring: 4 }, ..Options::default() },
        r#"#include "program.h"
#include <stdio.h>
void ring(void)
{
    stopC_message m = {0};
    m.v0 = 7;
    (void)esp_post_stopC(&m);
}
bool logC_ready(void) { return true; }
void logC_put(const logC_message *m) { printf("%d\n", (int)m->v0); }
int main(void)
{
    static esp_t t;
    esp_init(&t);
    (void)esp_step(&t, 0, 0, 0);
    return 0;
}
"#,
    );
}

/// A caller that accepts one message in each step.
const SANS_IO: &str = r#"#include "program.h"
#include <stdio.h>
#include <string.h>
static stopC_message offer;
static logC_message said;
static esp_input in;
static esp_output out;
/* Byte by byte: the step has the environment as a constant argument. */
static void set(void *to, size_t value) { memcpy(to, &value, sizeof value); }
void ring(void)
{
    offer.v0 = 7;
    set(&in.stopC.count, 1);
}
int main(void)
{
    static esp_t t;
    int k;
    esp_init(&t);
    for (k = 0; k < 99; k++) {
        size_t taken = 0;
        esp_status status;
        in.stopC.messages = &offer;
        out.head.taken = &taken;
        out.head.limit = 1;
        out.logC.messages = &said;
        out.logC.capacity = 1;
        out.logC.count = 0;
        status = esp_step(&t, &in, &out, 0);
        in.stopC.count -= taken;
        if (out.logC.count) printf("%d\n", (int)said.v0);
        if (status != ESP_AGAIN) break;
    }
    return 0;
}
"#;

#[test]
fn an_earlier_branch_is_committed_first_sans_io() {
    check_all(&Options { style: Style::SansIo, ..Options::default() }, SANS_IO);
}

/// `p` has a message for the environment, which has no room yet, or waits for a time; `q` arrives when there is room
/// and the time has passed.
const SENDS: &str = r#"#include "program.h"
#include <stdio.h>
#include <string.h>
static logC_message said;
static esp_output out;
static void set(void *to, size_t value) { memcpy(to, &value, sizeof value); }
void ring(void) { set(&out.logC.capacity, 1); }
int main(void)
{
    static esp_t t;
    static tickC_message tick;
    int k;
    esp_init(&t);
    for (k = 0; k < 99; k++) {
        esp_status status;
        out.head.limit = 1;
        out.tickC.messages = &tick;
        out.tickC.capacity = 1;
        out.tickC.count = 0;
        out.logC.messages = &said;
        out.logC.capacity = k < ROOM ? 0 : 1;
        out.logC.count = 0;
        status = esp_step(&t, 0, &out, k * INT64_C(1000000));
        if (out.tickC.count) printf("tick %d\n", k);
        if (out.logC.count) printf("%d\n", (int)said.v0);
        if (status != ESP_AGAIN) break;
    }
    printf("status %d\n", (int)esp_step(&t, 0, &out, 0));
    return 0;
}
"#;

#[test]
fn a_requester_restarts_its_search_after_a_full_output() {
    // The writer holds a value in a local; the step is left between its search and the rendezvous.
    check(
        "channel tickC() external in;\nchannel logC(int) external in;\nchannel c(int);\nextern fn ring();\n\
         process p { var n = 0; while (n < 2) { pri alt { when (n == 0) out(logC, 7) { n += 1; } \
         in(c, $v) { out(logC, v); n += 1; } } } }\n\
         process q { ring(); for i in 3..4 { out(c, i * i); } }\n",
        &Options { style: Style::SansIo, ..Options::default() },
        &format!("#define ROOM 1\n{}", SENDS),
        "7\n9\nstatus 2\n",
    );
}

#[test]
fn an_elapsed_time_is_committed_first() {
    check(
        "channel tickC() external in;\nchannel logC(int) external in;\nchannel c(int);\nextern fn ring();\n\
         process p { var n = 0; while (n < 2) { pri alt { when (n == 0) after (500 us) { n += 1; out(logC, 7); } \
         in(c, $v) { out(logC, v); n += 1; } } } }\n\
         process q { ring(); out(tickC); out(c, 9); }\n",
        &Options { style: Style::SansIo, ..Options::default() },
        &format!("#define ROOM 0\n{}", SENDS),
        "tick 0\n7\n9\nstatus 2\n",
    );
}
