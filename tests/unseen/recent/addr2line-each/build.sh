awk 'BEGIN { for (f = 0; f < 1500; f++) printf "int step%d(int a, struct part *p)\n{\n\tp->name = p->next ? \"%d\" : 0;\n\treturn a * %d + p->weight;\n}\n", f, f, f;
  print "int main(void)\n{\n\tstruct part p = { 0 };\n\treturn step7(1, &p);\n}" }' > body
{ echo 'struct part { const char *name; struct part *next; int weight; };'; cat body; } > engine.c
gcc -g -O1 -o engine engine.c && rm body
