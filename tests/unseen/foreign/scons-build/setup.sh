n=1
while [ $n -le 70 ]; do
    printf '#include <stdio.h>\nint part%d(int n) { for (int i = 0; i < n; i++) n += i %% %d; return n; }\n' $n $((n + 1)) > part$n.c
    n=$((n + 1))
done
echo 'int part1(int); int main(void) { return part1(3) == 0; }' > main.c
echo 'Program("tool", Glob("*.c"))' > SConstruct
