/* Loads sessions into LMDB, ten thousand to a transaction, and reads some of them back. */
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

int main(void)
{
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_val k, v;
	CK(mdb_env_create(&env));
	CK(mdb_env_set_mapsize(env, 1ul << 30));
	CK(mdb_env_open(env, "sessions.mdb", MDB_NOSUBDIR, 0644));
	char key[32], val[200];
	k.mv_data = key;
	v.mv_data = val;
	v.mv_size = sizeof val;
	for (int t = 0; t < 30; t++) {
		CK(mdb_txn_begin(env, NULL, 0, &txn));
		CK(mdb_dbi_open(txn, NULL, 0, &dbi));
		for (int i = 0; i < 10000; i++) {
			k.mv_size = snprintf(key, sizeof key, "s%03d%06d", t, i);
			memset(val, i, sizeof val);
			CK(mdb_put(txn, dbi, &k, &v, 0));
		}
		CK(mdb_txn_commit(txn));
	}
	CK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	unsigned long sum = 0;
	for (int i = 0; i < 10000; i++) {
		k.mv_size = snprintf(key, sizeof key, "s%03d%06d", i % 30, i * 7 % 10000);
		CK(mdb_get(txn, dbi, &k, &v));
		sum += *(unsigned char *)v.mv_data;
		v.mv_data = val;
	}
	mdb_txn_abort(txn);
	mdb_env_close(env);
	printf("%lu\n", sum);
	return 0;
}
