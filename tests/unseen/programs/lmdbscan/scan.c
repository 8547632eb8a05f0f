/* Totals all orders of an LMDB database. */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CK(x)                                                                                      \
	do {                                                                                       \
		int rc_ = (x);                                                                     \
		if (rc_) {                                                                         \
			fprintf(stderr, "%s: %s\n", #x, mdb_strerror(rc_));                        \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

int main(int argc, char **argv)
{
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cur;
	MDB_val k, v;
	int fill = argc > 1 && !strcmp(argv[1], "fill");
	CK(mdb_env_create(&env));
	CK(mdb_env_set_mapsize(env, 1ul << 30));
	CK(mdb_env_open(env, "orders.mdb",
			MDB_NOSUBDIR | MDB_NORDAHEAD | (fill ? 0 : MDB_RDONLY | MDB_NOLOCK), 0644));
	CK(mdb_txn_begin(env, NULL, fill ? 0 : MDB_RDONLY, &txn));
	CK(mdb_dbi_open(txn, NULL, 0, &dbi));
	if (fill) {
		char val[900];
		unsigned x = 1;
		for (int i = 0; i < 60000; i++) {
			x = x * 1103515245u + 12345u;
			char key[16];
			snprintf(key, sizeof key, "o%08x", x);
			memset(val, x >> 16, sizeof val);
			k.mv_data = key;
			k.mv_size = 9;
			v.mv_data = val;
			v.mv_size = sizeof val;
			CK(mdb_put(txn, dbi, &k, &v, 0));
		}
		CK(mdb_txn_commit(txn));
		mdb_env_close(env);
		return 0;
	}
	CK(mdb_cursor_open(txn, dbi, &cur));
	unsigned long n = 0, sum = 0;
	while (!mdb_cursor_get(cur, &k, &v, MDB_NEXT)) {
		n++;
		sum += *(unsigned char *)v.mv_data;
	}
	printf("%lu orders, %lu\n", n, sum);
	return 0;
}
