// Loads a word table into LevelDB with batches and reads a range.
#include <cstdio>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>
#include <memory>
#include <string>

int main()
{
    leveldb::DB *raw;
    leveldb::Options o;
    o.create_if_missing = true;
    o.write_buffer_size = 16 << 20;
    auto s = leveldb::DB::Open(o, "words.ldb", &raw);
    if (!s.ok()) { fprintf(stderr, "%s\n", s.ToString().c_str()); return 1; }
    std::unique_ptr<leveldb::DB> db(raw);
    unsigned x = 1;
    std::string val(100, 'v');
    for (int b = 0; b < 400; b++) {
        leveldb::WriteBatch batch;
        for (int i = 0; i < 1000; i++) {
            x = x * 1103515245u + 12345u;
            batch.Put("word" + std::to_string(x), val);
        }
        leveldb::WriteOptions w;
        w.sync = b % 100 == 99;
        s = db->Write(w, &batch);
        if (!s.ok()) { fprintf(stderr, "%s\n", s.ToString().c_str()); return 1; }
    }
    std::unique_ptr<leveldb::Iterator> it(db->NewIterator(leveldb::ReadOptions()));
    long n = 0;
    for (it->Seek("word2"); it->Valid() && it->key().starts_with("word2"); it->Next()) n++;
    printf("%ld\n", n);
    return 0;
}
