// Sorts a file that shall not fit into memory: sorted runs in unnamed temporary files, then one merge.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <queue>
#include <unistd.h>
#include <vector>

static const size_t RUN = 1 << 21, BUF = 1 << 16;   // records of 8 bytes

static void put(int fd, const void *p, size_t n)
{
    const char *c = (const char *)p;
    while (n) {
        ssize_t w = write(fd, c, n);
        if (w < 0) { perror("write"); exit(1); }
        c += w; n -= w;
    }
}
static size_t get(int fd, void *p, size_t n)
{
    char *c = (char *)p; size_t have = 0;
    while (have < n) {
        ssize_t r = read(fd, c + have, n - have);
        if (r < 0) { perror("read"); exit(1); }
        if (!r) break;
        have += r;
    }
    return have;
}
struct Run { int fd; std::vector<uint64_t> b; size_t at = 0, n = 0; bool next(uint64_t &v) {
    if (at == n) { b.resize(BUF); n = get(fd, b.data(), BUF * 8) / 8; at = 0; if (!n) return false; }
    v = b[at++]; return true; } };

int main()
{
    int in = open("keys.bin", O_RDONLY);
    if (in < 0) { perror("keys.bin"); return 1; }
    std::vector<uint64_t> v(RUN);
    std::vector<Run> runs;
    size_t n;
    while ((n = get(in, v.data(), RUN * 8) / 8)) {
        std::sort(v.begin(), v.begin() + n);
        Run r; r.fd = open(".", O_TMPFILE | O_RDWR, 0600);
        if (r.fd < 0) { perror("O_TMPFILE"); return 1; }
        put(r.fd, v.data(), n * 8);
        if (lseek(r.fd, 0, SEEK_SET) < 0) return 1;
        runs.push_back(std::move(r));
    }
    int out = open("sorted.bin", O_CREAT | O_TRUNC | O_WRONLY, 0644);
    typedef std::pair<uint64_t, size_t> E;
    std::priority_queue<E, std::vector<E>, std::greater<E>> q;
    uint64_t x;
    for (size_t i = 0; i < runs.size(); i++) if (runs[i].next(x)) q.push({x, i});
    std::vector<uint64_t> o; o.reserve(BUF);
    while (!q.empty()) {
        auto [k, i] = q.top(); q.pop();
        o.push_back(k);
        if (o.size() == BUF) { put(out, o.data(), o.size() * 8); o.clear(); }
        if (runs[i].next(x)) q.push({x, i});
    }
    put(out, o.data(), o.size() * 8);
    if (close(out)) { perror("sorted.bin"); return 1; }
    return 0;
}
