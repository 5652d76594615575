/* The filters as C++20 coroutines, each a generator that resumes the one before it for its next byte: no channels, no
 * scheduler, the cheapest that the language has. Arguments: program, times. Prints nanoseconds per input byte, then the
 * result. */
#include <array>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>
#include <vector>

namespace {

constexpr int LENGTH = 10000, END = -1;
constexpr std::uint32_t SIZE = 65536;
constexpr std::array<std::uint8_t, 8> KEY = {0x1f, 0x2e, 0x3d, 0x4c, 0x5b, 0x6a, 0x79, 0x88};

class Filter {
public:
    struct promise_type {
        int value = END;
        Filter get_return_object() { return Filter{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int next) noexcept
        {
            value = next;
            return {};
        }
        void return_void() noexcept { value = END; }
        void unhandled_exception() { std::terminate(); }
    };

    explicit Filter(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    Filter(Filter &&other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    Filter(const Filter &) = delete;
    Filter &operator=(const Filter &) = delete;
    ~Filter()
    {
        if (handle_) handle_.destroy();
    }

    /* The next byte, or END, after which nobody asks again. */
    int next()
    {
        handle_.resume();
        return handle_.promise().value;
    }

private:
    std::coroutine_handle<promise_type> handle_;
};

Filter read(const std::vector<std::uint8_t> &data, int times)
{
    for (int round = 0; round < times; round++) {
        for (const std::uint8_t byte : data) co_yield byte;
    }
}

Filter evener(Filter from)
{
    bool odd = false;
    for (int byte; (byte = from.next()) != END; odd = !odd) co_yield byte;
    if (odd) co_yield 0;
}

Filter swap(Filter from)
{
    for (int first; (first = from.next()) != END;) {
        const int second = from.next();
        if (second == END) {
            co_yield first;
            co_return;
        }
        co_yield second;
        co_yield first;
    }
}

Filter crc32(Filter from)
{
    std::array<std::uint32_t, 256> table;
    for (std::uint32_t i = 0; i < 256; i++) {
        std::uint32_t rest = i;
        for (int bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >> 1) ^ 0xedb88320u : rest >> 1;
        table[i] = rest;
    }
    std::uint32_t crc = 0xffffffffu;
    for (int byte; (byte = from.next()) != END;) {
        crc = table[(crc ^ static_cast<std::uint32_t>(byte)) & 0xff] ^ (crc >> 8);
        co_yield byte;
    }
    crc = ~crc;
    for (int i = 0; i < 4; i++) co_yield static_cast<std::uint8_t>(crc >> 8 * i);
}

Filter rle(Filter from)
{
    int count = 0, last = 0;
    for (;;) {
        const int byte = from.next();
        if (count > 0 && (byte != last || count == 255)) {
            co_yield count;
            co_yield last;
            count = 0;
        }
        if (byte == END) co_return;
        last = byte;
        count++;
    }
}

Filter pes(Filter from)
{
    std::size_t at = 0;
    for (int byte; (byte = from.next()) != END; at = (at + 1) % 8) co_yield byte ^ KEY[at];
}

Filter rld(Filter from)
{
    for (int count; (count = from.next()) != END;) {
        const int value = from.next();
        if (value == END) co_return;
        for (int copy = 0; copy < count; copy++) co_yield value;
    }
}

Filter chain(int program, const std::vector<std::uint8_t> &data, int times)
{
    switch (program) {
    case 1:
        return crc32(swap(evener(read(data, times))));
    case 2:
        return pes(swap(rle(read(data, times))));
    case 3:
        return rld(swap(pes(pes(swap(rle(read(data, times)))))));
    default:
        return rld(swap(pes(pes(swap(crc32(read(data, times)))))));
    }
}

} // namespace

int main(int argc, char **argv)
{
    const int program = argc > 1 ? std::atoi(argv[1]) : 1, times = argc > 2 ? std::atoi(argv[2]) : 1;
    std::vector<std::uint8_t> data, written(SIZE);
    std::uint32_t random = 1, count = 0, hash = 2166136261u;
    while (data.size() < LENGTH) {
        random = random * 1664525u + 1013904223u;
        const auto byte = static_cast<std::uint8_t>(1 + (random >> 24) % 15);
        if (data.empty() || byte != data.back()) data.push_back(byte);
    }
    const auto start = std::chrono::steady_clock::now();
    Filter last = chain(program, data, times);
    for (int byte; (byte = last.next()) != END;) written[count++ & (SIZE - 1)] = static_cast<std::uint8_t>(byte);
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    for (const std::uint8_t byte : written) hash = (hash ^ byte) * 16777619u;
    std::printf("%.3f\n%u %08x\n", taken.count() / (static_cast<double>(times) * LENGTH), count, hash);
    return 0;
}
