#!/bin/sh
# Installs the packages the recordings use; daemons are never started.
set -e
made=
if [ ! -e /usr/sbin/policy-rc.d ]; then
  printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d; made=1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get install -y --no-install-recommends postgresql-15 mariadb-server redis-server nginx-light \
  lmdb-utils rsyslog rsync p7zip-full zstd xz-utils borgbackup restic vmtouch procmail logrotate \
  fio stress-ng sqlite3 git strace tdb-tools bup liblmdb-dev libaio-dev libleveldb-dev \
  beanstalkd cpio libimage-exiftool-perl php-cli ripgrep rrdtool ruby unzip zip gawk curl e2fsprogs procps \
  liburing-dev subversion qemu-utils aria2 apache2 apache2-utils rcs squashfs-tools pv mercurial etcd-server \
  rocksdb-tools ccache ninja-build logtail file default-jdk-headless lua5.4 \
  bedtools bind9 bind9-dnsutils brz cronolog cssc derby-tools dovecot-core fdm gddrescue krb5-admin-server krb5-kdc \
  libdbm-deep-perl libhsqldb-java liblucene8-java libnbd-bin libnss3-tools mairix nbdkit nmh openssl osmium-tool \
  python3-libnbd python3-tinydb python3-whoosh python3-xapian runit scons shapelib swi-prolog-nox tabix \
  bogofilter-bdb ddpt firebird3.0-server-core firebird3.0-utils flac gdal-bin goaccess golang-github-coreos-bbolt-dev \
  golang-golang-x-sys-dev graphicsmagick libarchive-tools libcache-cache-perl liblog-log4perl-perl lighttpd mosquitto \
  mosquitto-clients nco node-chokidar notmuch openmpi-bin libopenmpi-dev pax plocate poppler-utils python3-h5py \
  python3-joblib python3-magic python3-numpy python3-pil python3-pysam python3-whisper python3-zarr recutils sassc \
  sleuthkit tcl tcpdump zpaq \
  aide binutils busybox clamav cmake dar emacs-nox erlang-base fdupes gcc gearman-job-server gearman-tools hugo \
  influxdb iputils-ping ldap-utils node-configstore ocaml-nox octave ostree par2 python3-filelock r-base-core rclone \
  since slapd sphinxsearch universal-ctags \
  bwa casync cdo erlang-mnesia fossil golang-github-dgraph-io-badger-dev isync libh2-java liblog-dispatch-perl \
  liblogback-java mhonarc mono-mcs mono-runtime netcdf-bin node-write-file-atomic python3-biopython \
  python3-diskcache python3-gdbm python3-lmdb python3-mpi4py python3-netcdf4 python3-pandas \
  python3-persist-queue python3-plyvel python3-pyfaidx python3-sklearn python3-tifffile qpdf rdfind rdiff-backup \
  samtools snapraid swish-e tinycdb unison vcftools xorriso \
  bzip2 ffmpeg gfortran gnuplot-nox golang-github-google-renameio-dev golang-go libberkeleydb-perl \
  libconfig-tiny-perl libvips-tools minimap2 mktorrent moreutils ncbi-blast+ openjdk-17-jdk-headless openssh-client \
  php-mysql pigz prometheus python3 python3-gi python3-tables python3-tdb ruby-activesupport rustc socat \
  taskwarrior xdelta3 zsh \
  $(command -v npm >/dev/null || echo nodejs npm) || { [ -n "$made" ] && rm -f /usr/sbin/policy-rc.d; exit 1; }
[ -n "$made" ] && rm -f /usr/sbin/policy-rc.d
for s in postgresql mariadb redis-server nginx rsyslog rsync beanstalkd apache2 apache-htcacheclean etcd \
  named dovecot krb5-kdc krb5-admin-server lighttpd mosquitto slapd \
  influxdb gearman-job-server sphinxsearch clamav-freshclam prometheus; do
  update-rc.d "$s" disable >/dev/null 2>&1 || :
done
