/* The C side of figure2.esp: address translation and packets, as small as they can be. */
#include <stdint.h>

/* Every translation is cached. */
int32_t translationUnavailable(int32_t virtualAddress) { return virtualAddress < 0; }

/* Physical memory lies a megabyte above virtual memory. */
int32_t translate(int32_t virtualAddress) { return virtualAddress + 0x100000; }

/* A packet is known by its number: the physical page and how many pages it has. */
int32_t preparePacket(int32_t physicalAddress, int32_t size) { return physicalAddress / 4096 * 16 + size / 4096; }
