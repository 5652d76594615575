/* Gives a file of many blocks through the sans-IO entry of examples/tftp/server.esp. Argument: how many blocks. */
#include "program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, MAX_MESSAGES = 8 };
static esp_t state;
static rxC_message acknowledgement;
static fileReplyC_message reply;
static requestC_message request;
static txC_message packets[MAX_MESSAGES];
static fileC_message calls[MAX_MESSAGES];
static refusalC_message refusals[MAX_MESSAGES];

static const char RRQ[] = "\0\1name\0octet";

int main(int argc, char **argv)
{
    const long blocks = argc > 1 ? atol(argv[1]) : 1;
    long sent = 0;
    uint32_t hash = 2166136261u;
    size_t taken[3] = {0};
    esp_input in;
    esp_output out;
    esp_status status;
    memset(&in, 0, sizeof in);
    memset(&out, 0, sizeof out);
    in.rxC.messages = &acknowledgement;
    in.fileReplyC.messages = &reply;
    in.requestC.messages = &request;
    in.requestC.count = 1;
    out.head.taken = taken;
    out.txC.messages = packets, out.txC.capacity = MAX_MESSAGES;
    out.fileC.messages = calls, out.fileC.capacity = MAX_MESSAGES;
    out.refusalC.messages = refusals, out.refusalC.capacity = MAX_MESSAGES;
    request.v0 = (peerT){0x7f000001, 1000};
    request.v1.length = sizeof RRQ;
    memcpy(request.v1.data, RRQ, sizeof RRQ);
    esp_init(&state);
    while (sent < blocks) {
        size_t i;
        memset(taken, 0, sizeof taken);
        status = esp_step(&state, &in, &out, 0);
        if (status == ESP_FAULT) return 1;
        in.rxC.count -= taken[0];
        in.fileReplyC.count -= taken[1];
        in.requestC.count -= taken[2];
        for (i = 0; i < out.fileC.count; i++) {
            reply.v0 = calls[i].v0;
            reply.v1.tag = fileReplyT_done;
            if (calls[i].v1.tag == fileCallT_read) {
                reply.v1.tag = fileReplyT_data;
                reply.v1.as.data.length = calls[i].v1.as.read.count;
                memset(reply.v1.as.data.data, 'a' + (int)(calls[i].v1.as.read.at / BLOCK % 26), BLOCK);
            }
            in.fileReplyC.count = 1;
        }
        for (i = 0; i < out.txC.count; i++) {
            const uint8_t *p = packets[i].v2.data;
            if (packets[i].v2.length != BLOCK + 4 || p[1] != 3) return 2;
            hash = (hash ^ (uint32_t)(p[2] << 16 | p[3] << 8 | p[4])) * 16777619u;
            acknowledgement.v0 = packets[i].v0;
            acknowledgement.v1 = packets[i].v1;
            acknowledgement.v2.length = 4;
            memcpy(acknowledgement.v2.data, "\0\4", 2);
            memcpy(acknowledgement.v2.data + 2, p + 2, 2);
            in.rxC.count = 1;
            sent++;
        }
        out.fileC.count = out.txC.count = 0;
    }
    printf("%ld %08x\n", sent, (unsigned)hash);
    return 0;
}
