// Copies the build's artifacts into the release directory and lists them.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

namespace fs = std::filesystem;

static bool publish(const fs::path &from, const fs::path &to)
{
    std::ifstream src(from, std::ios::binary);
    std::ofstream dst(to, std::ios::binary | std::ios::trunc);
    if (!src || !dst) return false;
    dst << src.rdbuf();
    dst.close();
    return bool(dst);
}

int main(int argc, char **argv)
{
    fs::path out = argc > 1 ? argv[1] : "release";
    fs::create_directories(out);
    std::vector<fs::path> files;
    for (auto &e : fs::directory_iterator("build"))
        if (e.is_regular_file() && e.path().extension() == ".img") files.push_back(e.path());
    std::ofstream list(out / "MANIFEST");
    for (auto &f : files) {
        if (!publish(f, out / f.filename())) {
            std::cerr << f << ": copy failed\n";
            return 1;
        }
        list << f.filename().string() << ' ' << fs::file_size(out / f.filename()) << '\n';
    }
    return list.flush() ? 0 : 1;
}
