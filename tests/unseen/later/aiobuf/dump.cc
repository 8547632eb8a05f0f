// Dumps the cells of a simulation asynchronously while the next ones are computed, and verifies the dump.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <libaio.h>
#include <unistd.h>
#include <vector>

static const size_t CELL = 1 << 20;
static const int CELLS = 240, BUFFERS = 3;

static void compute(unsigned char *cell, int no)
{
    for (size_t i = 0; i < CELL; i += 4096) memset(cell + i, (int)(no * 7 + i / 4096), 4096);
}

static uint64_t sum(const unsigned char *cell)
{
    uint64_t s = 0, v;
    for (size_t i = 0; i < CELL; i += 8) {
        memcpy(&v, cell + i, 8);
        s = s * 31 + v;
    }
    return s;
}

int main()
{
    io_context_t ctx = 0;
    int fd = open("dump.dat", O_CREAT | O_TRUNC | O_RDWR | O_DIRECT, 0644);
    if (fd < 0 || posix_fallocate(fd, 0, (off_t)CELL * CELLS) || io_setup(256, &ctx)) return perror("dump.dat"), 1;
    std::vector<unsigned char *> buffer(BUFFERS);
    for (auto &b : buffer)
        if (posix_memalign((void **)&b, 4096, CELL)) return 1;
    std::vector<iocb> request(CELLS);
    std::vector<uint64_t> sums(CELLS);
    for (int no = 0; no < CELLS; no++) {
        unsigned char *b = buffer[no % BUFFERS];
        compute(b, no);
        sums[no] = sum(b);
        io_prep_pwrite(&request[no], fd, b, CELL, (long long)no * CELL);
        iocb *p = &request[no];
        if (io_submit(ctx, 1, &p) != 1) return 1;
    }
    std::vector<io_event> done(CELLS);
    if (io_getevents(ctx, CELLS, CELLS, done.data(), nullptr) != CELLS) return 1;
    for (auto &e : done)
        if (e.res != CELL) return 1;
    if (fsync(fd)) return 1;
    int bad = 0;
    for (int no = 0; no < CELLS; no++) {
        if (pread(fd, buffer[0], CELL, (off_t)no * CELL) != (ssize_t)CELL) return 1;
        bad += sum(buffer[0]) != sums[no];
    }
    printf("%d of %d cells are not what was dumped\n", bad, CELLS);
    return bad != 0;
}
