/* The environment of the TFTP server on a microcontroller: datagrams in frames on a serial line, one file of 64 KiB in
 * memory.
 *
 *   a5 | length, 2 | kind | address, 4 | port, 2 | content | sum, 2        numbers with the most significant byte first
 *
 * `kind` is the destination or source port of the datagram: 0 is the server's, 1 the transfer's. Kind 2 requests the
 * number of datagrams dropped by the interrupt handler; the reply is four bytes of content. The length counts all bytes
 * after it. The sum is Fletcher's, of the bytes between length and sum: after the loss of a byte, the rest of a frame
 * can look like a frame. */
#include "board.h"
#include "tftp.h"

enum { MARK = 0xa5, HEAD = 7, SUM = 2, REQUEST = 0, TRANSFER = 1, DROPPED = 2, FILE_SIZE = 65536 };

/* The time to erase flash memory of this size. A test makes it last until so many datagrams have been dropped. */
#ifndef ERASE_DROPS
#define ERASE_DROPS 0
#endif
static const int64_t erase_ns = 50000000;
static const uint32_t erase_drops = ERASE_DROPS;

static esp_t program;

/* -- the line ------------------------------------------------------------------------------------------------------ */

/* Adds a byte to a Fletcher sum; both halves are below 255. */
static uint16_t add(uint16_t sum, uint8_t byte)
{
    const unsigned low = ((sum & 0xff) + byte) % 255;
    return (uint16_t)(((sum >> 8) + low) % 255 << 8 | low);
}

static void put_frame(uint8_t kind, const peerT *peer, const uint8_t *content, uint16_t length)
{
    const uint16_t all = (uint16_t)(HEAD + length + SUM);
    const uint8_t head[] = {
        MARK, (uint8_t)(all >> 8), (uint8_t)all, kind,
        (uint8_t)(peer->host >> 24), (uint8_t)(peer->host >> 16), (uint8_t)(peer->host >> 8), (uint8_t)peer->host,
        (uint8_t)(peer->port >> 8), (uint8_t)peer->port,
    };
    uint16_t sum = 0;
    for (unsigned i = 0; i < sizeof head; i++) {
        board_write(head[i]);
        if (i >= 3) sum = add(sum, head[i]);
    }
    for (unsigned i = 0; i < length; i++) {
        board_write(content[i]);
        sum = add(sum, content[i]);
    }
    board_write((uint8_t)(sum >> 8));
    board_write((uint8_t)sum);
}

/* The incomplete frame of the interrupt handler, which is its only user. */
static struct {
    uint8_t bytes[3 + HEAD + sizeof ((bytes_516 *)0)->data + SUM];
    uint16_t length;
} incoming;

/* Written by the handler, cleared by the main loop. */
static volatile bool asked_for_drops;

static uint32_t drops(void) { return esp_dropped_requestC() + esp_dropped_rxC(); }

/* Posts the datagram of a complete frame to the program's ring, or drops and counts it if the ring is full. */
static void post_frame(void)
{
    const uint8_t *body = incoming.bytes + 3;
    const uint16_t length = (uint16_t)(incoming.length - 3 - HEAD - SUM);
    uint16_t sum = 0;
    const peerT peer = {
        (uint32_t)body[1] << 24 | (uint32_t)body[2] << 16 | (uint32_t)body[3] << 8 | body[4],
        (uint16_t)(body[5] << 8 | body[6]),
    };
    static requestC_message request;
    static rxC_message received;
    bytes_516 *content = body[0] == REQUEST ? &request.v1 : &received.v2;
    for (unsigned i = 0; i < HEAD + (unsigned)length; i++) sum = add(sum, body[i]);
    if (sum != (body[HEAD + length] << 8 | body[HEAD + length + 1])) return;
    if (body[0] == DROPPED) {
        asked_for_drops = true;
        return;
    }
    content->length = length;
    for (unsigned i = 0; i < length; i++) content->data[i] = body[HEAD + i];
    if (body[0] == REQUEST) {
        request.v0 = peer;
        esp_post_requestC(&request);
    } else {
        received.v0 = 0; /* the one transfer */
        received.v1 = peer;
        esp_post_rxC(&received);
    }
}

void board_received(uint8_t byte)
{
    if (incoming.length == 0 && byte != MARK) return;
    incoming.bytes[incoming.length++] = byte;
    if (incoming.length < 3) return;
    const unsigned all = (unsigned)incoming.bytes[1] << 8 | incoming.bytes[2];
    if (all < HEAD + SUM || all > sizeof incoming.bytes - 3) {
        incoming.length = 0; /* not a valid frame: search for the next mark */
    } else if (incoming.length == 3 + all) {
        post_frame();
        incoming.length = 0;
    }
}

bool txC_ready(void) { return true; }

void txC_put(const txC_message *message) { put_frame(TRANSFER, &message->v1, message->v2.data, message->v2.length); }

bool refusalC_ready(void) { return true; }

void refusalC_put(const refusalC_message *message)
{
    put_frame(REQUEST, &message->v0, message->v1.data, message->v1.length);
}

/* -- the file ------------------------------------------------------------------------------------------------------ */

/* The file, which exists from the start, and a draft that replaces it when the draft is closed. */
static uint8_t files[2][FILE_SIZE];
static uint32_t sizes[2];
static unsigned current;

static void make_file(void)
{
    uint32_t state = 1;
    for (unsigned i = 0; i < FILE_SIZE; i++) {
        state = state * 1664525 + 1013904223;
        files[0][i] = (uint8_t)(state >> 24);
    }
    sizes[0] = FILE_SIZE;
}

bool fileC_ready(void) { return true; }

/* One reply per request. This is the only function that posts replies. */
void fileC_put(const fileC_message *message)
{
    static fileReplyC_message reply;
    const fileCallT *call = &message->v1;
    const unsigned draft = !current;
    uint32_t at, count;
    reply.v0 = message->v0;
    reply.v1.tag = fileReplyT_done;
    switch (call->tag) {
    case fileCallT_create:
        sizes[draft] = 0;
        /* Interrupts remain enabled during the wait. */
        for (const int64_t erased = board_now() + erase_ns; board_now() < erased || drops() < erase_drops;) {}
        break;
    case fileCallT_size:
        reply.v1.tag = fileReplyT_size;
        reply.v1.as.size = sizes[current];
        break;
    case fileCallT_read:
        at = call->as.read.at < sizes[current] ? call->as.read.at : sizes[current];
        count = call->as.read.count < sizes[current] - at ? call->as.read.count : sizes[current] - at;
        reply.v1.tag = fileReplyT_data;
        reply.v1.as.data.length = (uint16_t)count;
        for (uint32_t i = 0; i < count; i++) reply.v1.as.data.data[i] = files[current][at + i];
        break;
    case fileCallT_write:
        at = call->as.write.at;
        count = call->as.write.content.length;
        if (at > FILE_SIZE || count > FILE_SIZE - at) {
            reply.v1.tag = fileReplyT_failed;
            reply.v1.as.failed.code = 3; /* no room left */
            reply.v1.as.failed.reason.length = 0;
            break;
        }
        for (uint32_t i = 0; i < count; i++) files[draft][at + i] = call->as.write.content.data[i];
        if (sizes[draft] < at + count) sizes[draft] = at + count;
        break;
    case fileCallT_close:
        current = draft;
        break;
    default:
        break;
    }
    esp_post_fileReplyC(&reply);
}

/* -- running ------------------------------------------------------------------------------------------------------- */

int main(void)
{
    esp_input input = {0};
    esp_output output = {{0}};
    make_file();
    esp_init(&program);
    board_start();
    for (;;) {
        const esp_status status = esp_step(&program, &input, &output, board_now());
        if (status == ESP_FAULT || status == ESP_DONE) {
            /* The program has ended: wait for a reset by the watchdog. */
            for (;;) board_sleep();
        }
        if (asked_for_drops) {
            const uint32_t count = drops();
            const uint8_t content[] = {(uint8_t)(count >> 24), (uint8_t)(count >> 16), (uint8_t)(count >> 8), (uint8_t)count};
            const peerT no_peer = {0, 0};
            asked_for_drops = false;
            put_frame(DROPPED, &no_peer, content, sizeof content);
        }
        if (status == ESP_SLEEP) board_sleep();
    }
}
