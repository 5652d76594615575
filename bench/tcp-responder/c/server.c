/* The peer: answers every request with the same 200 bytes and closes the connection, as HTTP/1.0 does. One thread over
 * epoll; what it is asked is not looked at but for the empty line. Argument: the port. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    static char answer[200] = "HTTP/1.0 200 OK\r\nContent-Length: 160\r\n\r\n";
    memset(answer + strlen(answer), 'x', sizeof answer - strlen(answer));
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), set = epoll_create1(0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)(count > 1 ? atoi(arguments[1]) : 0))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 256) != 0 ||
        epoll_ctl(set, EPOLL_CTL_ADD, listener, &event) != 0) {
        perror("server");
        return 1;
    }
    for (;;) {
        struct epoll_event events[64];
        const int ready = epoll_wait(set, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            const int socket = events[i].data.fd;
            if (socket == listener) {
                int caller;
                while ((caller = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    event.data.fd = caller;
                    epoll_ctl(set, EPOLL_CTL_ADD, caller, &event);
                }
                continue;
            }
            char request[2048];
            const ssize_t length = recv(socket, request, sizeof request, 0);
            /* A request comes in one segment here; one that does not gets no answer, and the client fails. */
            if (length >= 4 && memcmp(request + length - 4, "\r\n\r\n", 4) == 0) send(socket, answer, sizeof answer, MSG_NOSIGNAL);
            close(socket);
        }
    }
}
