// Packs a text: the first pass counts the symbols, the second codes with lengths that follow from the counts.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <vector>
#include <fcntl.h>
#include <unistd.h>

static const size_t CHUNK = 1 << 20;

template <class F> void pass(int fd, std::vector<unsigned char> &buf, F f)
{
    if (lseek(fd, 0, SEEK_SET) < 0) { perror("lseek"); exit(1); }
    ssize_t n;
    while ((n = read(fd, buf.data(), CHUNK)) > 0) f(buf.data(), n);
    if (n < 0) { perror("read"); exit(1); }
}

int main()
{
    int fd = open("book.txt", O_RDONLY), out = open("book.pck", O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (fd < 0 || out < 0) { perror("open"); return 1; }
    std::vector<unsigned char> buf(CHUNK), code;
    unsigned long count[256] = {};
    pass(fd, buf, [&](unsigned char *p, ssize_t n) { for (ssize_t i = 0; i < n; i++) count[p[i]]++; });
    std::vector<int> order(256);
    for (int i = 0; i < 256; i++) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return count[a] > count[b]; });
    unsigned char len[256]; unsigned short bits[256];
    for (int i = 0; i < 256; i++) { int s = order[i]; len[s] = i < 15 ? 4 : 12; bits[s] = i < 15 ? i : 0xf00 | i; }
    unsigned long acc = 0; int have = 0;
    code.reserve(2 * CHUNK);
    pass(fd, buf, [&](unsigned char *p, ssize_t n) {
        for (ssize_t i = 0; i < n; i++) {
            acc = acc << len[p[i]] | bits[p[i]]; have += len[p[i]];
            while (have >= 8) { have -= 8; code.push_back(acc >> have); }
        }
        if (code.size() >= CHUNK) { if (write(out, code.data(), code.size()) != (ssize_t)code.size()) exit(1); code.clear(); }
    });
    if (have) code.push_back(acc << (8 - have));
    if (write(out, code.data(), code.size()) != (ssize_t)code.size() || close(out)) { perror("book.pck"); return 1; }
    return 0;
}
