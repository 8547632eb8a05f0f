/* The variable in which readers look for the span context of a thread (OTEP 4947), in a library of
 * its own: how code reaches it depends on how the library was compiled. */
#include <stddef.h>

#ifndef BEFORE
#define BEFORE 40
#endif

/* In front of it, so that its offset is not 0. With many bytes of them the loader has no room for
 * the library next to the thread pointer once the program runs. */
__thread char before[BEFORE] = { 1 };
__attribute__((visibility("default"))) __thread void *volatile otel_thread_ctx_v1;

void publish(void *record);

__attribute__((visibility("default"))) void publish(void *record)
{
	before[1] = record != NULL;
	otel_thread_ctx_v1 = record;
}
