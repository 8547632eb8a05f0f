// Counts the words of a mapped corpus; the kernel is told that it is read from start to end.
#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

struct Mapping {
    const char *data = nullptr;
    size_t size = 0;

    explicit Mapping(const char *name)
    {
        int fd = open(name, O_RDONLY);
        struct stat st;
        if (fd >= 0 && !fstat(fd, &st)) {
            void *m = mmap(nullptr, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
            if (m != MAP_FAILED) {
                data = static_cast<const char *>(m);
                size = st.st_size;
                madvise(m, size, MADV_SEQUENTIAL);
            }
        }
        if (fd >= 0) close(fd);
    }
    ~Mapping()
    {
        if (data) munmap(const_cast<char *>(data), size);
    }
};

int main()
{
    Mapping corpus("corpus.txt");
    if (!corpus.data) return perror("corpus.txt"), 1;
    std::unordered_map<std::string_view, long> count;
    const char *p = corpus.data, *end = p + corpus.size;
    while (p < end) {
        while (p < end && (*p == ' ' || *p == '\n')) p++;
        const char *w = p;
        while (p < end && *p != ' ' && *p != '\n') p++;
        if (p > w) count[std::string_view(w, p - w)]++;
    }
    std::vector<std::pair<long, std::string_view>> top;
    for (auto &c : count) top.emplace_back(c.second, c.first);
    std::sort(top.rbegin(), top.rend());
    for (size_t i = 0; i < 5 && i < top.size(); i++)
        printf("%8ld %.*s\n", top[i].first, (int)top[i].second.size(), top[i].second.data());
    return 0;
}
