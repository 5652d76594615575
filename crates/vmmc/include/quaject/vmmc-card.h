/* The registers of the simulated network card, for firmware in C and for the C parts of firmware in ESP.
 *
 * The card is the one of "Fast Paths" (Kumar, Li), section 6.2: a 33 MHz processor, 1 MB of memory, and three DMA
 * engines: one between the host's memory and the card's, one that sends, one that receives. Names and places of the
 * registers are ours. Each is a word of 32 bits; times are cycles of 33 MHz, lengths and addresses are bytes.
 *
 * address   memory
 * 0         1 MB of memory of the card, big-endian: code, data, buffers of packets
 * 0x100000  the registers below; nothing else can be accessed
 *
 * The host's memory is not in this map. Only the host engine reaches it, by addresses of the bus ("physical"
 * addresses): the firmware translates.
 */
#ifndef QUAJECT_VMMC_CARD_H
#define QUAJECT_VMMC_CARD_H

#define QJ_CARD_MEMORY_BYTES 0x100000u
#define QJ_CARD_MAX_PACKET_BYTES 0x10000u

#define QJ_CARD_REGISTER(offset) (*(volatile unsigned int *)(QJ_CARD_MEMORY_BYTES + (offset)))

/* The time, read only. The high word may change between two reads: read it again after the low one. */
#define QJ_CARD_CLOCK QJ_CARD_REGISTER(0x00u)
#define QJ_CARD_CLOCK_HIGH QJ_CARD_REGISTER(0x04u)

/* What has happened: bits that stay set until a one is written to them. */
#define QJ_CARD_EVENTS QJ_CARD_REGISTER(0x08u)
#define QJ_CARD_HOST_DONE 1u     /* the host engine has transferred all */
#define QJ_CARD_SEND_DONE 2u     /* the send engine has read all */
#define QJ_CARD_RECEIVE_DONE 4u  /* a packet is in the buffer of the receive engine */
#define QJ_CARD_DOORBELL_RUNG 8u /* the host has written QJ_CARD_DOORBELL */

/* Written: the processor sleeps until an event is set, at most so many cycles. Write only. LANai has no such register
 * and polls; firmware that sleeps is simulated much faster while nothing happens. */
#define QJ_CARD_WAIT QJ_CARD_REGISTER(0x0cu)

/* The number of this node, and of all nodes. Read only. */
#define QJ_CARD_NODE QJ_CARD_REGISTER(0x10u)
#define QJ_CARD_NODES QJ_CARD_REGISTER(0x14u)

/* The value that the host has written last, read only; and an interrupt with a value to the host, write only. */
#define QJ_CARD_DOORBELL QJ_CARD_REGISTER(0x18u)
#define QJ_CARD_INTERRUPT QJ_CARD_REGISTER(0x1cu)

/* Host engine: transfers QJ_CARD_HOST_LENGTH bytes between QJ_CARD_HOST_ADDRESS of the host and QJ_CARD_HOST_BUFFER of
 * the card, at 133 MB/s. The command, written, starts it; read, it is the number of bytes that are not yet
 * transferred, in order of addresses. */
#define QJ_CARD_HOST_ADDRESS QJ_CARD_REGISTER(0x20u)
#define QJ_CARD_HOST_BUFFER QJ_CARD_REGISTER(0x24u)
#define QJ_CARD_HOST_LENGTH QJ_CARD_REGISTER(0x28u)
#define QJ_CARD_HOST_COMMAND QJ_CARD_REGISTER(0x2cu)
#define QJ_CARD_HOST_TO_CARD 1u
#define QJ_CARD_CARD_TO_HOST 2u

/* Send engine: reads QJ_CARD_SEND_LENGTH bytes from QJ_CARD_SEND_BUFFER for the node QJ_CARD_SEND_NODE, at 160 MB/s.
 * The command, written, starts it: a packet is any number of pieces and one last piece, all for the node of the last.
 * Read, it is 1 while the engine works. The bytes must not change until then. */
#define QJ_CARD_SEND_BUFFER QJ_CARD_REGISTER(0x30u)
#define QJ_CARD_SEND_LENGTH QJ_CARD_REGISTER(0x34u)
#define QJ_CARD_SEND_NODE QJ_CARD_REGISTER(0x38u)
#define QJ_CARD_SEND_COMMAND QJ_CARD_REGISTER(0x3cu)
#define QJ_CARD_SEND_PIECE 1u
#define QJ_CARD_SEND_LAST 2u

/* Receive engine: writes one packet to QJ_CARD_RECEIVE_BUFFER, of QJ_CARD_RECEIVE_LIMIT bytes; more bytes are lost. The
 * command QJ_CARD_RECEIVE_START starts it; read, it is QJ_CARD_RECEIVE_START until a packet is in the buffer, and 0
 * then. QJ_CARD_RECEIVE_LENGTH, read only, is the length of that packet with the lost bytes. Packets that arrive while
 * it is not started wait, a limited number of them. */
#define QJ_CARD_RECEIVE_BUFFER QJ_CARD_REGISTER(0x40u)
#define QJ_CARD_RECEIVE_LIMIT QJ_CARD_REGISTER(0x44u)
#define QJ_CARD_RECEIVE_COMMAND QJ_CARD_REGISTER(0x48u)
#define QJ_CARD_RECEIVE_LENGTH QJ_CARD_REGISTER(0x4cu)
#define QJ_CARD_RECEIVE_START 1u

#endif
