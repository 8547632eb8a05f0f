// Finds the files that the sources of a project include, along a search path.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>
namespace fs = std::filesystem;

int main()
{
    std::vector<std::string> path;
    for (int i = 0; i < 40; i++) path.push_back("inc/lib" + std::to_string(i));
    size_t found = 0, missing = 0;
    for (auto &f : fs::directory_iterator("src")) {
        std::ifstream in(f.path());
        std::string line;
        while (std::getline(in, line)) {
            if (line.rfind("#include <", 0)) continue;
            std::string h = line.substr(10, line.size() - 11);
            bool ok = false;
            for (auto &p : path)
                if (fs::exists(p + "/" + h)) { ok = true; break; }
            ok ? found++ : missing++;
        }
    }
    std::cout << found << " found, " << missing << " missing\n";
    return 0;
}
