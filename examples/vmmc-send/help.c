/* The C functions of send.esp: a minimal address translation and minimal packets. */
#include <stdint.h>

/* Every translation is cached. */
int32_t translationUnavailable(int32_t virtualAddress) { return virtualAddress < 0; }

/* A physical address is the virtual one plus a megabyte. */
int32_t translate(int32_t virtualAddress) { return virtualAddress + 0x100000; }

/* A packet is a number: the physical page and the number of pages. */
int32_t preparePacket(int32_t physicalAddress, int32_t size) { return physicalAddress / 4096 * 16 + size / 4096; }
