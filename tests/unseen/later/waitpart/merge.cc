// Two producers write sorted parts; the merger takes each part as soon as it is there.
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

static const int PARTS = 6;

static std::string part(int producer, int no)
{
    return "part-" + std::to_string(producer) + "-" + std::to_string(no);
}

static void produce(int producer)
{
    for (int no = 0; no < PARTS; no++) {
        usleep(120000 + producer * 30000); // the query behind it
        std::string name = part(producer, no), tmp = name + ".tmp";
        std::ofstream out(tmp, std::ios::binary);
        for (int i = 0; i < 20000; i++) out << (i * 2 + producer) << '\n';
        out.close();
        if (!out || rename(tmp.c_str(), name.c_str())) _exit(1);
    }
    _exit(0);
}

static std::ifstream await(const std::string &name)
{
    for (;;) {
        std::ifstream in(name);
        if (in) return in;
    }
}

int main()
{
    for (int p = 0; p < 2; p++)
        if (fork() == 0) produce(p);
    long lines = 0, sum = 0;
    for (int no = 0; no < PARTS; no++)
        for (int p = 0; p < 2; p++) {
            std::ifstream in = await(part(p, no));
            long v;
            while (in >> v) {
                sum += v;
                lines++;
            }
            unlink(part(p, no).c_str());
        }
    while (wait(nullptr) > 0) {}
    std::cout << lines << " lines, sum " << sum << "\n";
    return lines == 2L * PARTS * 20000 ? 0 : 1;
}
