/* A small HTTP/1.1 server of static files, written straight-line: one task per connection, requests one after the
 * other, each with a deadline.
 *
 *     cc -O2 httpd.c $(pkg-config --cflags --libs quaject-ac) -o httpd && ./httpd 8000 FOLDER
 */
#define _GNU_SOURCE
#include <quaject/ac/io.h>

#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECOND 1000000000u
#define IDLE_NS (30u * (uint64_t)SECOND)
#define HEAD_BYTES 8192

static int folder;

struct connection {
    int socket;
    size_t filled; /* bytes of `head` that were read */
    char head[HEAD_BYTES];
};

/* Reads until the empty line. Returns the bytes up to and with it; 0 when the client has closed; or -1. */
static ssize_t read_head(struct connection *c) {
    for (;;) {
        char *end = memmem(c->head, c->filled, "\r\n\r\n", 4);
        if (end != NULL) return end + 4 - c->head;
        if (c->filled == sizeof c->head) return -1;
        ssize_t count = qj_ac_read(c->socket, c->head + c->filled, sizeof c->head - c->filled);
        if (count <= 0) return 0;
        c->filled += (size_t)count;
    }
}

/* Below the folder, whatever the path says: the kernel refuses `..` and links that lead out. */
static int open_below(const char *path) {
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}

static int value_of(char digit) {
    static const char digits[] = "0123456789abcdef";
    const char *at = digit != '\0' ? strchr(digits, digit | (digit >= 'A' ? 0x20 : 0)) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* `%41` is `A`. False for what is no path. */
static bool decode(char *path) {
    char *to = path;
    for (const char *from = path; *from != '\0' && *from != '?'; from++) {
        if (*from == '%') {
            int high = value_of(from[1]), low = high < 0 ? -1 : value_of(from[2]);
            if (low < 0 || (high | low) == 0) return false;
            *to++ = (char)(high * 16 + low);
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return true;
}

static const char *type_of(const char *path) {
    static const char *const types[][2] = {{".html", "text/html; charset=utf-8"}, {".css", "text/css"},
                                           {".js", "text/javascript"},           {".txt", "text/plain; charset=utf-8"},
                                           {".png", "image/png"},                {".svg", "image/svg+xml"}};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof types / sizeof *types; i++) {
        if (strcasecmp(dot, types[i][0]) == 0) return types[i][1];
    }
    return "application/octet-stream";
}

static int answer(struct connection *c, const char *status, const char *text, bool keep) {
    char response[512];
    int length = snprintf(response, sizeof response,
                          "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: %s\r\n\r\n%s",
                          status, strlen(text), keep ? "keep-alive" : "close", text);
    return qj_ac_write_all(c->socket, response, (size_t)length);
}

static int send_file(struct connection *c, const char *path, bool body, bool keep) {
    int file = open_below(path[0] != '\0' ? path : ".");
    struct stat status;
    if (file >= 0 && fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
        close(file);
        char index[HEAD_BYTES + 16];
        snprintf(index, sizeof index, "%s%sindex.html", path, path[0] == '\0' || path[strlen(path) - 1] == '/' ? "" : "/");
        file = open_below(index);
        path = "index.html";
    }
    if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        if (file >= 0) close(file);
        return answer(c, "404 Not Found", body ? "not found\n" : "", keep);
    }
    char buffer[16384];
    int head = snprintf(buffer, 512,
                        "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %lld\r\nConnection: %s\r\n\r\n", type_of(path),
                        (long long)status.st_size, keep ? "keep-alive" : "close");
    /* Head and first piece together; what the file has grown by since is left out, and a shrunken one ends the
     * connection, because its length was promised. */
    long long left = body ? (long long)status.st_size : 0;
    size_t used = (size_t)head;
    int result = 0;
    do {
        size_t room = sizeof buffer - used;
        ssize_t count = left > 0 ? qj_ac_read(file, buffer + used, left < (long long)room ? (size_t)left : room) : 0;
        if (count < 0 || (count == 0 && left > 0)) {
            result = -EIO;
            break;
        }
        left -= count;
        result = qj_ac_write_all(c->socket, buffer, used + (size_t)count);
        used = 0;
    } while (result == 0 && left > 0);
    close(file);
    return result;
}

/* One request. Returns 0 when another may follow. */
static int serve_one(struct connection *c) {
    ssize_t head = read_head(c);
    if (head == 0) return -1;
    if (head < 0) return answer(c, "431 Request Header Fields Too Large", "head too large\n", false), -1;
    c->head[head - 2] = '\0';
    char method[16], path[HEAD_BYTES];
    int minor;
    if (sscanf(c->head, "%15[A-Z] /%8191[^ \r\n] HTTP/1.%1d\r", method, path, &minor) != 3) {
        path[0] = '\0';
        if (sscanf(c->head, "%15[A-Z] / HTTP/1.%1d\r", method, &minor) != 2) {
            return answer(c, "400 Bad Request", "bad request\n", false), -1;
        }
    }
    bool keep = minor == 1 ? strcasestr(c->head, "\nConnection: close") == NULL
                           : strcasestr(c->head, "\nConnection: keep-alive") != NULL;
    bool is_get = strcmp(method, "GET") == 0, is_head = strcmp(method, "HEAD") == 0;
    int result;
    if (!is_get && !is_head) {
        /* Its body, if any, would be taken for the next request. */
        keep = false;
        result = answer(c, "405 Method Not Allowed", "only GET and HEAD\n", keep);
    } else if (strcasestr(c->head, "\nContent-Length:") != NULL || strcasestr(c->head, "\nTransfer-Encoding:") != NULL) {
        keep = false;
        result = answer(c, "413 Content Too Large", "no body is expected\n", keep);
    } else if (!decode(path)) {
        result = answer(c, "400 Bad Request", "bad path\n", keep);
    } else {
        result = send_file(c, path, is_get, keep);
    }
    memmove(c->head, c->head + head, c->filled - (size_t)head);
    c->filled -= (size_t)head;
    return result == 0 && keep ? 0 : -1;
}

static void serve(int socket) {
    struct connection c = {.socket = socket};
    int more;
    do {
        DO_FINISH_(request, {
            qj_ac_deadline(request, IDLE_NS);
            more = serve_one(&c);
        });
    } while (more == 0);
    close(socket);
}

/* Whether an error of accept is ours. All others come and go: a client has left already, the network is down,
 * descriptors or memory are used up. */
static bool is_final(int error) {
    return error == -EBADF || error == -EINVAL || error == -ENOTSOCK || error == -EOPNOTSUPP || error == -EFAULT ||
           error == QJ_AC_CANCELED;
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: httpd PORT FOLDER\n");
        return 2;
    }
    /* A connection's frames hold its buffers. */
    qj_ac_configure(&(struct qj_ac_options){.stack_bytes = 128 * 1024});
    signal(SIGPIPE, SIG_IGN);
    folder = open(arguments[2], O_PATH | O_DIRECTORY | O_CLOEXEC);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)atoi(arguments[1]));
    socklen_t length = sizeof address;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (folder < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 4096) != 0) {
        perror("httpd: cannot serve");
        return 1;
    }
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("listening on port %d with %s\n", ntohs(address.sin_port), qj_ac_io_backend());
    fflush(stdout);
    DO_FINISH({
        int connection;
        while ((connection = qj_ac_accept(listener, NULL, NULL)) >= 0 || !is_final(connection)) {
            if (connection < 0) {
                qj_ac_sleep(10000000);
                continue;
            }
            setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            ASYNC_CALL(serve, connection);
        }
        fprintf(stderr, "httpd: accept: %s\n", strerror(-connection));
    });
    return 1;
}
