/* The path of program 1 by hand: pairs of bytes go through evener, swap and crc32 to what is written, while there is
 * one more byte to leave before. */
#include "program.h"
uint32_t stream(stream_state *s, bytes_10000 *data, array_256_uint32 *table, array_65536_uint8 *written)
{
    const uint32_t length = data->length;
    uint32_t i = (uint32_t)s->read_i + 1, crc = s->crc32_crc, count = s->write_count;
    int32_t round = s->read_round;
    if (i + 2 >= length) return 0; /* not two bytes and one more to leave before */
    for (;;) {
        for (; i + 2 < length; i += 2) {
            const uint8_t a = data->data[i], b = data->data[i + 1];
            crc = table->at[(crc ^ b) & 0xff] ^ (crc >> 8);
            written->at[count++ & 0xffff] = b;
            crc = table->at[(crc ^ a) & 0xff] ^ (crc >> 8);
            written->at[count++ & 0xffff] = a;
        }
        if (i + 2 != length || round + 1 >= s->read_times) break;
        { /* the last pair of a round, with more to come */
            const uint8_t a = data->data[i], b = data->data[i + 1];
            crc = table->at[(crc ^ b) & 0xff] ^ (crc >> 8);
            written->at[count++ & 0xffff] = b;
            crc = table->at[(crc ^ a) & 0xff] ^ (crc >> 8);
            written->at[count++ & 0xffff] = a;
        }
        i = 0;
        round++;
    }
    s->read_i = (int32_t)i;
    s->read_round = round;
    s->crc32_crc = crc;
    s->write_count = count;
    return 1;
}
