/* Queues of C++ in memory of their own, at the start of a line. */
#ifndef MEMORY_HPP
#define MEMORY_HPP
#include <new>
#include <stdlib.h>

template <class T> static void *make() { return new (aligned_alloc(128, (sizeof(T) + 127) / 128 * 128)) T(); }
template <class T> static void destroy(void *q) {
    static_cast<T *>(q)->~T();
    free(q);
}

#endif
