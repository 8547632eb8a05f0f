/*
 * Measures what a pair of SSL_write and SSL_read costs, in processor time: the two ends of a connection exchange
 * messages through memory. Run it by itself, and as the command of `fathom record --spans http`:
 *
 *   cc -O2 -o tls_cost benches/tls_cost.c -lssl -lcrypto
 *   openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=x -keyout key.pem -out certificate.pem
 *   ./tls_cost certificate.pem key.pem 100000 100
 */
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static SSL *end(const SSL_METHOD *method, BIO *bio, const char *certificate, const char *key)
{
	SSL_CTX *context = SSL_CTX_new(method);
	if (!context ||
	    (certificate &&
	     (SSL_CTX_use_certificate_file(context, certificate, SSL_FILETYPE_PEM) != 1 ||
	      SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)))
		return NULL;
	SSL *ssl = SSL_new(context);
	if (ssl)
		SSL_set_bio(ssl, bio, bio);
	return ssl;
}

int main(int argc, char **argv)
{
	enum { REPEATS = 3, ROOM = 1 << 20, MOST = 16384 };
	int messages = argc == 5 ? atoi(argv[3]) : 0, bytes = argc == 5 ? atoi(argv[4]) : 0;
	BIO *a, *b;
	if (messages < 1 || bytes < 1 || bytes > MOST ||
	    BIO_new_bio_pair(&a, ROOM, &b, ROOM) != 1) {
		fprintf(stderr, "usage: tls_cost CERTIFICATE KEY MESSAGES BYTES\n");
		return 2;
	}
	SSL *server = end(TLS_server_method(), a, argv[1], argv[2]);
	SSL *client = end(TLS_client_method(), b, NULL, NULL);
	if (!server || !client)
		return 1;
	SSL_set_accept_state(server);
	SSL_set_connect_state(client);
	for (int i = 0; i < 4; i++) {
		SSL_do_handshake(client);
		SSL_do_handshake(server);
	}
	static char buffer[MOST];
	for (int repeat = 0; repeat < REPEATS; repeat++) {
		double began = now_ns();
		for (int i = 0; i < messages; i++) {
			if (SSL_write(client, buffer, bytes) != bytes ||
			    SSL_read(server, buffer, bytes) != bytes)
				return 1;
		}
		printf("%.0f ns per pair\n", (now_ns() - began) / messages);
	}
	return 0;
}
