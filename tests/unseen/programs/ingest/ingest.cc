// Takes orders and pictures: orders are durable one by one, two threads store the pictures beside them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>


static void pictures(int no)
{
    std::vector<char> buf(1 << 20, (char)no);
    for (int f = 0; f < 10; f++) {
        std::string name = "pictures" + std::to_string(no) + "_" + std::to_string(f) + ".dat";
        int fd = open(name.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
        if (fd < 0) { perror(name.c_str()); exit(1); }
        for (int i = 0; i < 32; i++)
            if (write(fd, buf.data(), buf.size()) != (ssize_t)buf.size()) { perror("pictures"); exit(1); }
        if (fsync(fd)) { perror("fsync"); exit(1); }
        close(fd);
    }
    int d = open(".", O_RDONLY);
    if (fsync(d)) exit(1);
    close(d);
}

int main()
{
    int fd = open("orders.log", O_CREAT | O_WRONLY | O_APPEND, 0644), d = open(".", O_RDONLY);
    if (fd < 0 || d < 0 || fsync(d)) { perror("orders.log"); return 1; }
    using clk = std::chrono::steady_clock;
    std::vector<double> alone, busy;
    std::vector<std::thread> t;
    std::atomic<int> running{0};
    std::string order(4096, 'o');
    for (int i = 0; i < 120; i++) {
        auto s = clk::now();
        if (write(fd, order.data(), order.size()) != (ssize_t)order.size() || fdatasync(fd)) { perror("orders.log"); return 1; }
        alone.push_back(std::chrono::duration<double, std::milli>(clk::now() - s).count());
        usleep(2000);
    }
    running = 2;
    for (int no = 0; no < 2; no++) t.emplace_back([no, &running] { pictures(no); running--; });
    while (running) {
        auto s = clk::now();
        if (write(fd, order.data(), order.size()) != (ssize_t)order.size() || fdatasync(fd)) { perror("orders.log"); return 1; }
        busy.push_back(std::chrono::duration<double, std::milli>(clk::now() - s).count());
        usleep(2000);
    }
    for (auto &x : t) x.join();
    std::sort(alone.begin(), alone.end()); std::sort(busy.begin(), busy.end());
    printf("order alone p50 %.2f p90 %.2f ms; with pictures n %zu p50 %.2f p90 %.2f ms\n", alone[60], alone[108], busy.size(), busy[busy.size() / 2], busy[busy.size() * 9 / 10]);
    return 0;
}
