/* Regular files, directories and descriptors: every call that one process needs, and its errors. */
#include "report.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>

static void show_contents(const char *path)
{
    char buffer[256];
    int file = open(path, O_RDONLY);
    long length = read(file, buffer, sizeof buffer - 1);
    buffer[length < 0 ? 0 : length] = 0;
    for (long index = 0; index < length; index++)
        if (buffer[index] == 0)
            buffer[index] = '0';
    printf("%s holds [%s]\n", path, buffer);
    close(file);
}

static void read_and_write(void)
{
    char buffer[32] = {0};
    int file = report("create", open("one", O_RDWR | O_CREAT | O_EXCL, 0644));
    report("write", write(file, "hello, world", 12));
    report("seek to 7", lseek(file, 7, SEEK_SET));
    report("read", read(file, buffer, sizeof buffer));
    printf("[%s]\n", buffer);
    report("read at the end", read(file, buffer, sizeof buffer));
    report("seek back", lseek(file, -5, SEEK_END));
    report("seek before the start", lseek(file, -50, SEEK_CUR));
    report("seek nowhere", lseek(file, 0, 99));
    report("pread", pread(file, buffer, 5, 0));
    report("pread before the start", pread(file, buffer, 5, -1));
    report("pwrite beyond the end", pwrite(file, "!", 1, 15));
    report("position", lseek(file, 0, SEEK_CUR));
    struct iovec parts[3] = {{"ab", 2}, {NULL, 0}, {"cd", 2}};
    report("writev", writev(file, parts, 3));
    report("writev of too many", writev(file, parts, -1));
    report("write nothing", write(file, NULL, 0));
    report("truncate", ftruncate(file, 14));
    report("truncate to less than nothing", ftruncate(file, -1));
    report("synchronise", fsync(file));
    report("close", close(file));
    report("close again", close(file));
    show_contents("one");
}

static void open_in_all_ways(void)
{
    char byte;
    report("exclusive creation of what exists", open("one", O_CREAT | O_EXCL | O_WRONLY, 0600));
    report("open what does not exist", open("nothing", O_RDONLY));
    report("open below a file", open("one/two", O_RDONLY));
    report("open nothing", open("", O_RDONLY));
    report("open a file as a directory", open("one", O_RDONLY | O_DIRECTORY));
    report("open a directory for writing", open(".", O_WRONLY));
    int reader = open("one", O_RDONLY);
    report("write to a reader", write(reader, "x", 1));
    report("truncate a reader", ftruncate(reader, 1));
    close(reader);
    int writer = open("one", O_WRONLY | O_APPEND);
    report("read from a writer", read(writer, &byte, 1));
    lseek(writer, 0, SEEK_SET);
    report("append", write(writer, "+++", 3));
    report("position after appending", lseek(writer, 0, SEEK_CUR));
    report("flags", fcntl(writer, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK));
    close(writer);
    show_contents("one");
    close(open("one", O_WRONLY | O_TRUNC));
    show_contents("one");
    char name[300];
    memset(name, 'n', sizeof name);
    name[299] = 0;
    report("a name that is too long", open(name, O_CREAT | O_RDWR, 0600));
    report("creation with a slash at the end", open("new/", O_CREAT | O_RDWR, 0600));
}

static void use_descriptors(void)
{
    /* What has been inherited. */
    for (int number = 3; number < 40; number++)
        close(number);
    int file = open("two", O_RDWR | O_CREAT, 0600);
    int copy = report("dup", dup(file)) >= 0 ? file + 1 : -1;
    write(file, "abc", 3);
    report("position of the copy", lseek(copy, 0, SEEK_CUR));
    report("dup2 onto itself", dup2(file, file));
    report("dup2 to a number", dup2(file, 20));
    report("dup2 to a number beyond the limit", dup2(file, 1 << 24));
    report("dup3 onto itself", dup3(file, file, 0));
    report("dup of what is closed", dup(100));
    report("copy from 10 on", fcntl(file, F_DUPFD, 10));
    report("copy from 15 on, closed by execve", fcntl(file, F_DUPFD_CLOEXEC, 15));
    report("is closed by execve", fcntl(15, F_GETFD));
    report("set", fcntl(10, F_SETFD, FD_CLOEXEC));
    report("is closed by execve", fcntl(10, F_GETFD));
    report("unknown command", fcntl(file, 12345));
    report("close 20", close(20));
    report("read from what is closed", read(20, &file, 1));
    report("descriptor -1", read(-1, &file, 1));
    report("write through the copy", write(copy, "def", 3));
    show_contents("two");
}

static void use_directories(void)
{
    struct stat status;
    char path[64];
    report("mkdir", mkdir("folder", 0755));
    report("mkdir again", mkdir("folder", 0755));
    report("mkdir below nothing", mkdir("nowhere/folder", 0755));
    report("mkdir with slashes", mkdir("folder/inner///", 0700));
    close(open("folder/file", O_CREAT | O_WRONLY, 0640));
    report("rmdir of a full one", rmdir("folder"));
    report("rmdir of a file", rmdir("folder/file"));
    report("unlink of a directory", unlink("folder/inner"));
    report("stat of the file", stat("folder/file", &status));
    printf("mode %o, size %ld, links %ld\n", status.st_mode, (long)status.st_size, (long)status.st_nlink);
    report("stat of a directory", stat("folder/../folder/./inner", &status));
    printf("mode %o\n", status.st_mode);
    report("stat below a file", stat("folder/file/x", &status));
    report("stat with a slash behind a file", stat("folder/file/", &status));
    report("access", access("folder/file", R_OK | W_OK));
    report("access to nothing", access("folder/nothing", F_OK));
    report("chdir", chdir("folder"));
    report("chdir to a file", chdir("file"));
    report("relative", access("../one", F_OK));
    report("getcwd into too little", getcwd(path, 2) ? 0 : -1);
    DIR *directory = opendir(".");
    int entries = 0, known = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        entries++;
        known += !strcmp(entry->d_name, "file") || !strcmp(entry->d_name, "inner") || !strcmp(entry->d_name, "..");
    }
    printf("%d entries, %d of them expected\n", entries, known);
    closedir(directory);
    report("unlink", unlink("file"));
    report("unlink again", unlink("file"));
    report("rmdir", rmdir("inner"));
    report("back", chdir(".."));
    report("rmdir", rmdir("folder"));
    report("readlink of a file", readlink("one", path, sizeof path));
}

static void outlive_the_name(void)
{
    char buffer[8] = {0};
    int file = open("short", O_RDWR | O_CREAT, 0600);
    write(file, "alive", 5);
    report("unlink", unlink("short"));
    report("read after unlink", pread(file, buffer, sizeof buffer, 0));
    printf("[%s]\n", buffer);
    report("open after unlink", open("short", O_RDONLY));
    close(file);
}

int main(void)
{
    read_and_write();
    open_in_all_ways();
    use_descriptors();
    use_directories();
    outlive_the_name();
    return 0;
}
