/* Node 0 sends messages to node 1 and waits for each to come back; both send again what is lost. Messages go from the
 * host's memory to the host's memory. Node 0 interrupts its host with the cycles of each round trip, and returns the
 * number of messages that were sent again. */
#include <quaject/vmmc-card.h>

#define ROUNDS 100u
#define TIMEOUT_CYCLES 3000u
#define PAGE 4096u

struct message {
    unsigned number;
    unsigned data[255];
};

static struct message out, in;

int main(void);

static void start_receive(void)
{
    QJ_CARD_RECEIVE_BUFFER = (unsigned)&in;
    QJ_CARD_RECEIVE_LIMIT = sizeof in;
    QJ_CARD_RECEIVE_COMMAND = QJ_CARD_RECEIVE_START;
}

static void wait_for(unsigned cycles)
{
    QJ_CARD_WAIT = cycles;
    QJ_CARD_EVENTS = ~0u;
}

static void transfer(unsigned command, struct message *buffer, unsigned address, unsigned length)
{
    QJ_CARD_HOST_ADDRESS = address;
    QJ_CARD_HOST_BUFFER = (unsigned)buffer;
    QJ_CARD_HOST_LENGTH = length;
    QJ_CARD_HOST_COMMAND = command;
    while (QJ_CARD_HOST_COMMAND != 0) {
    }
}

static void send(unsigned node, unsigned length)
{
    QJ_CARD_SEND_BUFFER = (unsigned)&out;
    QJ_CARD_SEND_LENGTH = length;
    QJ_CARD_SEND_NODE = node;
    QJ_CARD_SEND_COMMAND = QJ_CARD_SEND_LAST;
    while (QJ_CARD_SEND_COMMAND != 0) {
    }
}

/* The length of the message with this number: 4 bytes to 1 KB. */
static unsigned length_of(unsigned number)
{
    return 4 + (number * 52 & 0x3fc) % 1021;
}

static unsigned ping(void)
{
    unsigned repeats = 0;
    start_receive();
    for (unsigned number = 1; number <= ROUNDS; number++) {
        unsigned length = length_of(number), start = QJ_CARD_CLOCK;
        transfer(QJ_CARD_HOST_TO_CARD, &out, number * 1024, length);
        out.number = number;
        for (;;) {
            unsigned sent = QJ_CARD_CLOCK;
            int is_answered = 0;
            send(1, length);
            while (!is_answered && QJ_CARD_CLOCK - sent < TIMEOUT_CYCLES) {
                wait_for(TIMEOUT_CYCLES);
                if (QJ_CARD_RECEIVE_COMMAND == 0) {
                    is_answered = in.number == number && QJ_CARD_RECEIVE_LENGTH == length;
                    if (is_answered) {
                        transfer(QJ_CARD_CARD_TO_HOST, &in, 0x40000 + number * 1024, length);
                    }
                    start_receive();
                }
            }
            if (is_answered) {
                break;
            }
            repeats++;
        }
        QJ_CARD_INTERRUPT = QJ_CARD_CLOCK - start;
    }
    return repeats;
}

static void pong(void)
{
    unsigned last = 0;
    start_receive();
    for (;;) {
        wait_for(100000);
        if (QJ_CARD_RECEIVE_COMMAND != 0) {
            continue;
        }
        unsigned length = QJ_CARD_RECEIVE_LENGTH;
        /* A repetition of an old message is answered again, but delivered once. */
        if (in.number == last + 1) {
            last++;
            transfer(QJ_CARD_CARD_TO_HOST, &in, last * 1024, length);
            QJ_CARD_INTERRUPT = last;
        }
        if (in.number == last) {
            transfer(QJ_CARD_HOST_TO_CARD, &out, last * 1024, length);
            start_receive();
            send(0, length);
        } else {
            start_receive();
        }
    }
}

int main(void)
{
    if (QJ_CARD_NODE == 0) {
        return (int)ping();
    }
    pong();
    return 0;
}
