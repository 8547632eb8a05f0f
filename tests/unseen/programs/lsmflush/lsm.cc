// Small LSM store: write-ahead log, memtable, sorted tables named by a manifest.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <fstream>
#include <vector>
using std::string;

static void die(const char *w) { perror(w); exit(1); }

struct Store {
    std::map<string, string> mem;
    size_t memBytes = 0, walPending = 0;
    string walBuf;
    int wal, manifest, dir, next = 1;

    Store() {
        mkdir("db", 0755);
        wal = open("db/wal.log", O_CREAT | O_WRONLY | O_APPEND, 0644);
        manifest = open("db/MANIFEST", O_CREAT | O_WRONLY | O_APPEND, 0644);
        dir = open("db", O_RDONLY | O_DIRECTORY);
        if (wal < 0 || manifest < 0 || dir < 0) die("open");
        fsync(dir);
    }
    void commit() {
        if (walBuf.empty()) return;
        if (write(wal, walBuf.data(), walBuf.size()) != (ssize_t)walBuf.size()) die("wal");
        if (fdatasync(wal)) die("fdatasync");
        walBuf.clear();
    }
    void put(const string &k, const string &v) {
        walBuf += k; walBuf += '\t'; walBuf += v; walBuf += '\n';
        memBytes += k.size() + v.size();
        mem[k] = v;
        if (walBuf.size() > 256 * 1024) commit();
        if (memBytes > 4 << 20) flush();
    }
    void flush() {
        commit();
        char name[64];
        snprintf(name, sizeof name, "db/%06d.sst", next);
        std::vector<char> buf(1 << 18);
        std::ofstream out;
        out.rdbuf()->pubsetbuf(buf.data(), buf.size());
        out.open(name, std::ios::binary);
        for (auto &e : mem) out << e.first << '\0' << e.second << '\0';
        out.close();
        if (!out) die("sst");
        char line[64];
        int n = snprintf(line, sizeof line, "add %06d.sst\n", next++);
        if (write(manifest, line, n) != n || fsync(manifest)) die("manifest");
        fsync(dir);
        // everything of the log is in the table now
        if (ftruncate(wal, 0)) die("truncate");
        mem.clear(); memBytes = 0;
    }
};

int main() {
    Store s;
    unsigned x = 12345;
    string v(200, 'v');
    for (int i = 0; i < 260000; i++) {
        x = x * 1103515245u + 12345u;
        char k[24]; snprintf(k, sizeof k, "user%08x", x);
        memcpy(&v[0], k, 12);
        s.put(k, v);
    }
    s.commit();
    return 0;
}
