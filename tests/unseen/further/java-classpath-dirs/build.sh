# a module has a directory of classes of its own
/usr/bin/python3 - <<'P'
import os
for m in range(220):
    os.makedirs(f"src/m{m}/app/m{m}", exist_ok=True)
    for c in range(12):
        with open(f"src/m{m}/app/m{m}/C{c}.java", "w") as f:
            f.write(f"package app.m{m}; public class C{c} implements Runnable {{ public void run() {{ }} }}\n")
P
/usr/bin/javac -d all $(find src -name '*.java') Start.java
for m in $(seq 0 219); do mkdir -p modules/m$m/app; mv all/app/m$m modules/m$m/app/; done
mkdir start && mv all/Start.class start/
for m in modules/*; do printf 'modules/%s:' ${m#*/}; done > classpath
rm -r src all
# the same in one jar, for comparison
mkdir packed && for m in modules/*; do cp -r $m/app packed/; done
/usr/bin/jar cf app.jar -C packed . && rm -r packed
