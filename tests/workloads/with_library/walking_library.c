/* A library whose functions call back, for walking.c. */

typedef long (*visit)(long number, void *context);

/* Three arguments are on the stack, and one is in a vector register. */
long walk_far(visit visit, void *context, long count, long a, long b, long c, long d, long e,
	      double f, long g)
{
	long sum = 0;
	for (long i = 0; i < count; i++)
		sum += visit(i, context);
	return sum + a + 2 * b + 3 * c + 4 * d + 5 * e + (long)(6 * f) + 7 * g;
}

long walk(visit visit, void *context, long count)
{
	long sum = 0;
	for (long i = 0; i < count; i++)
		sum += visit(i, context);
	return sum;
}
