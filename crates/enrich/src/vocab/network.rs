//! Names of sockets, and of calls that wait, in the order in which strace prints them.

use super::tables::names;
use super::{Kind, append, bits, hex, known_bits, one, separate};

names! {
    DOMAIN net {
        AF_UNSPEC, AF_UNIX, AF_INET, AF_AX25, AF_IPX, AF_APPLETALK, AF_NETROM, AF_BRIDGE, AF_ATMPVC,
        AF_X25, AF_INET6, AF_ROSE, AF_DEC = 12, AF_NETBEUI, AF_SECURITY, AF_KEY, AF_NETLINK, AF_PACKET,
        AF_ASH, AF_ECONET, AF_ATMSVC, AF_RDS, AF_SNA, AF_IRDA, AF_PPPOX, AF_WANPIPE, AF_LLC, AF_IB = 27,
        AF_MPLS = 28, AF_CAN, AF_TIPC, AF_BLUETOOTH, AF_IUCV, AF_RXRPC, AF_ISDN, AF_PHONET,
        AF_IEEE802154, AF_CAIF, AF_ALG, AF_NFC, AF_VSOCK, AF_KCM, AF_QIPCRTR, AF_SMC, AF_XDP, AF_MCTP,
    }

    SOCKET_TYPE net {
        SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, SOCK_DCCP = 6,
        SOCK_PACKET = 10,
    }

    PROTOCOL net {
        IPPROTO_IP = 0, IPPROTO_ICMP = 1, IPPROTO_IGMP = 2, IPPROTO_IPIP = 4, IPPROTO_TCP = 6,
        IPPROTO_EGP = 8, IPPROTO_PUP = 12, IPPROTO_UDP = 17, IPPROTO_IDP = 22, IPPROTO_TP = 29,
        IPPROTO_DCCP = 33, IPPROTO_IPV6 = 41, IPPROTO_RSVP = 46, IPPROTO_GRE = 47, IPPROTO_ESP = 50,
        IPPROTO_AH = 51, IPPROTO_ICMPV6 = 58, IPPROTO_PIM = 103, IPPROTO_COMP = 108,
        IPPROTO_SCTP = 132, IPPROTO_UDPLITE = 136, IPPROTO_RAW = 255, IPPROTO_MPTCP = 262,
    }

    NETLINK net {
        NETLINK_ROUTE = 0, NETLINK_USERSOCK = 2, NETLINK_FIREWALL = 3, NETLINK_SOCK_DIAG = 4,
        NETLINK_NFLOG = 5, NETLINK_XFRM = 6, NETLINK_SELINUX = 7, NETLINK_ISCSI = 8,
        NETLINK_AUDIT = 9, NETLINK_FIB_LOOKUP = 10, NETLINK_CONNECTOR = 11, NETLINK_NETFILTER = 12,
        NETLINK_IP6_FW = 13, NETLINK_DNRTMSG = 14, NETLINK_KOBJECT_UEVENT = 15,
        NETLINK_GENERIC = 16, NETLINK_SCSITRANSPORT = 18, NETLINK_ECRYPTFS = 19, NETLINK_RDMA = 20,
        NETLINK_CRYPTO = 21, NETLINK_SMC = 22,
    }

    LEVEL net {
        SOL_IP = 0, SOL_SOCKET, SOL_TCP, SOL_UDP, SOL_IPV6, SOL_ICMPV6, SOL_SCTP, SOL_UDPLITE, SOL_RAW,
        SOL_PACKET, SOL_NETLINK, SOL_TIPC, SOL_BLUETOOTH, SOL_ALG, SOL_TLS, SOL_XDP, SOL_MPTCP,
    }

    SOCKET_OPTION net {
        SO_DEBUG, SO_REUSEADDR, SO_TYPE, SO_ERROR, SO_DONTROUTE, SO_BROADCAST, SO_SNDBUF, SO_RCVBUF,
        SO_KEEPALIVE, SO_OOBINLINE, SO_NO_CHECK, SO_PRIORITY, SO_LINGER, SO_BSDCOMPAT, SO_REUSEPORT,
        SO_PASSCRED, SO_PEERCRED, SO_RCVLOWAT, SO_SNDLOWAT, SO_RCVTIMEO_OLD, SO_SNDTIMEO_OLD,
        SO_SECURITY_AUTHENTICATION, SO_SECURITY_ENCRYPTION_TRANSPORT,
        SO_SECURITY_ENCRYPTION_NETWORK, SO_BINDTODEVICE, SO_ATTACH_FILTER, SO_DETACH_FILTER,
        SO_PEERNAME, SO_TIMESTAMP_OLD, SO_ACCEPTCONN, SO_PEERSEC, SO_SNDBUFFORCE, SO_RCVBUFFORCE,
        SO_PASSSEC, SO_TIMESTAMPNS_OLD, SO_MARK, SO_TIMESTAMPING_OLD, SO_PROTOCOL, SO_DOMAIN,
        SO_RXQ_OVFL, SO_WIFI_STATUS, SO_PEEK_OFF, SO_NOFCS, SO_LOCK_FILTER, SO_SELECT_ERR_QUEUE,
        SO_BUSY_POLL, SO_MAX_PACING_RATE, SO_BPF_EXTENSIONS, SO_INCOMING_CPU, SO_ATTACH_BPF,
        SO_ATTACH_REUSEPORT_CBPF, SO_ATTACH_REUSEPORT_EBPF, SO_CNX_ADVICE, SO_MEMINFO = 55,
        SO_INCOMING_NAPI_ID, SO_COOKIE, SO_PEERGROUPS = 59, SO_ZEROCOPY, SO_TXTIME,
        SO_BINDTOIFINDEX, SO_TIMESTAMP_NEW, SO_TIMESTAMPNS_NEW, SO_TIMESTAMPING_NEW,
        SO_RCVTIMEO_NEW, SO_SNDTIMEO_NEW, SO_DETACH_REUSEPORT_BPF, SO_PREFER_BUSY_POLL,
        SO_BUSY_POLL_BUDGET, SO_NETNS_COOKIE, SO_BUF_LOCK, SO_RESERVE_MEM, SO_TXREHASH, SO_RCVMARK,
        SO_PASSPIDFD, SO_PEERPIDFD,
    }

    TCP_OPTION net {
        TCP_NODELAY = 1, TCP_MAXSEG = 2, TCP_CORK = 3, TCP_KEEPIDLE = 4, TCP_KEEPINTVL = 5,
        TCP_KEEPCNT = 6, TCP_SYNCNT = 7, TCP_LINGER2 = 8, TCP_DEFER_ACCEPT = 9,
        TCP_WINDOW_CLAMP = 10, TCP_INFO = 11, TCP_QUICKACK = 12, TCP_CONGESTION = 13,
        TCP_MD5SIG = 14, TCP_THIN_LINEAR_TIMEOUTS = 16, TCP_THIN_DUPACK = 17,
        TCP_USER_TIMEOUT = 18, TCP_REPAIR = 19, TCP_REPAIR_QUEUE = 20, TCP_QUEUE_SEQ = 21,
        TCP_REPAIR_OPTIONS = 22, TCP_FASTOPEN = 23, TCP_TIMESTAMP = 24, TCP_NOTSENT_LOWAT = 25,
        TCP_CC_INFO = 26, TCP_SAVE_SYN = 27, TCP_SAVED_SYN = 28, TCP_REPAIR_WINDOW = 29,
        TCP_FASTOPEN_CONNECT = 30, TCP_ULP = 31, TCP_MD5SIG_EXT = 32, TCP_FASTOPEN_KEY = 33,
        TCP_FASTOPEN_NO_COOKIE = 34, TCP_ZEROCOPY_RECEIVE = 35, TCP_INQ = 36, TCP_TX_DELAY = 37,
    }

    IP_OPTION net {
        IP_TOS, IP_TTL, IP_HDRINCL, IP_OPTIONS, IP_ROUTER_ALERT, IP_RECVOPTS, IP_RETOPTS,
        IP_PKTINFO, IP_PKTOPTIONS, IP_MTU_DISCOVER, IP_RECVERR, IP_RECVTTL, IP_RECVTOS, IP_MTU,
        IP_FREEBIND, IP_IPSEC_POLICY, IP_XFRM_POLICY, IP_PASSSEC, IP_TRANSPARENT, IP_ORIGDSTADDR,
        IP_MINTTL, IP_NODEFRAG, IP_CHECKSUM, IP_BIND_ADDRESS_NO_PORT, IP_RECVFRAGSIZE,
        IP_MULTICAST_IF, IP_MULTICAST_TTL, IP_MULTICAST_LOOP, IP_ADD_MEMBERSHIP,
        IP_DROP_MEMBERSHIP, IP_UNBLOCK_SOURCE, IP_BLOCK_SOURCE, IP_ADD_SOURCE_MEMBERSHIP,
        IP_DROP_SOURCE_MEMBERSHIP, IP_MSFILTER, IP_MULTICAST_ALL, IP_UNICAST_IF,
    }

    IPV6_OPTION net {
        IPV6_ADDRFORM, IPV6_2292PKTINFO, IPV6_2292HOPOPTS, IPV6_2292DSTOPTS, IPV6_2292RTHDR,
        IPV6_2292PKTOPTIONS, IPV6_CHECKSUM, IPV6_2292HOPLIMIT, IPV6_NEXTHOP, IPV6_AUTHHDR,
        IPV6_FLOWINFO, IPV6_UNICAST_HOPS, IPV6_MULTICAST_IF, IPV6_MULTICAST_HOPS,
        IPV6_MULTICAST_LOOP, IPV6_ADD_MEMBERSHIP, IPV6_DROP_MEMBERSHIP, IPV6_ROUTER_ALERT,
        IPV6_MTU_DISCOVER, IPV6_MTU, IPV6_RECVERR, IPV6_V6ONLY, IPV6_JOIN_ANYCAST,
        IPV6_LEAVE_ANYCAST, IPV6_MULTICAST_ALL, IPV6_FLOWLABEL_MGR, IPV6_FLOWINFO_SEND,
        IPV6_IPSEC_POLICY, IPV6_XFRM_POLICY, IPV6_HDRINCL, IPV6_RECVPKTINFO, IPV6_PKTINFO,
        IPV6_RECVHOPLIMIT, IPV6_HOPLIMIT, IPV6_RECVHOPOPTS, IPV6_HOPOPTS, IPV6_RTHDRDSTOPTS,
        IPV6_RECVRTHDR, IPV6_RTHDR, IPV6_RECVDSTOPTS, IPV6_DSTOPTS, IPV6_RECVPATHMTU, IPV6_PATHMTU,
        IPV6_DONTFRAG, IPV6_RECVTCLASS, IPV6_TCLASS, IPV6_AUTOFLOWLABEL, IPV6_ADDR_PREFERENCES,
        IPV6_MINHOPCOUNT, IPV6_ORIGDSTADDR, IPV6_TRANSPARENT, IPV6_UNICAST_IF, IPV6_RECVFRAGSIZE,
        IPV6_FREEBIND,
    }

    UDP_OPTION net {
        UDP_CORK = 1, UDP_ENCAP = 100, UDP_NO_CHECK6_TX = 101, UDP_NO_CHECK6_RX = 102,
        UDP_SEGMENT = 103, UDP_GRO = 104,
    }

    SHUTDOWN net { SHUT_RD, SHUT_WR, SHUT_RDWR }

    FUTEX general {
        FUTEX_WAIT, FUTEX_WAKE, FUTEX_FD, FUTEX_REQUEUE, FUTEX_CMP_REQUEUE, FUTEX_WAKE_OP,
        FUTEX_LOCK_PI, FUTEX_UNLOCK_PI, FUTEX_TRYLOCK_PI, FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET,
        FUTEX_WAIT_REQUEUE_PI, FUTEX_CMP_REQUEUE_PI, FUTEX_LOCK_PI2,
    }

    FUTEX2_SIZE general { FUTEX2_SIZE_U8, FUTEX2_SIZE_U16, FUTEX2_SIZE_U32, FUTEX2_SIZE_U64 }

    FUTEX2 general { FUTEX2_NUMA, FUTEX2_MPOL, FUTEX2_PRIVATE }

    EPOLL_CREATE general { EPOLL_CLOEXEC }

    EPOLL_CONTROL general { EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD }

    EPOLL_EVENTS general {
        EPOLLIN, EPOLLPRI, EPOLLOUT, EPOLLRDNORM, EPOLLRDBAND, EPOLLWRNORM, EPOLLWRBAND, EPOLLMSG,
        EPOLLERR, EPOLLHUP, EPOLLRDHUP, EPOLLEXCLUSIVE, EPOLLWAKEUP, EPOLLONESHOT, EPOLLET,
    }

    POLL_EVENTS general {
        POLLIN, POLLPRI, POLLOUT, POLLRDNORM, POLLWRNORM, POLLRDBAND, POLLWRBAND, POLLERR, POLLHUP,
        POLLNVAL, POLLMSG, POLLREMOVE, POLLRDHUP,
    }

    EVENTFD general { EFD_SEMAPHORE, EFD_CLOEXEC, EFD_NONBLOCK }

    TIMERFD general { TFD_CLOEXEC, TFD_NONBLOCK }

    TIMERFD_SET general { TFD_TIMER_ABSTIME, TFD_TIMER_CANCEL_ON_SET }

    SIGNALFD general { SFD_CLOEXEC = 0o2000000, SFD_NONBLOCK = 0o4000 }

    CLOCK general {
        CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
        CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME,
        CLOCK_REALTIME_ALARM, CLOCK_BOOTTIME_ALARM, CLOCK_SGI_CYCLE, CLOCK_TAI,
    }

    TIMER general { TIMER_ABSTIME }

    WAIT general {
        WNOHANG, WSTOPPED, WEXITED, WCONTINUED, WNOWAIT, __WCLONE = 0x8000_0000, __WALL = 0x4000_0000,
        __WNOTHREAD = 0x2000_0000,
    }

    ID_TYPE general { P_ALL, P_PID, P_PGID, P_PIDFD }
}

const PRIVATE: u64 = 128;
const REALTIME: u64 = 256;

/// Whether an operation of futex takes a time to wait for.
pub(crate) fn futex_waits(operation: u64) -> bool {
    matches!(operation & 0x7f, 0 | 6 | 9 | 11 | 13)
}

/// Appends `value` as `kind`, one of the kinds of this file.
pub(super) fn write(kind: Kind, value: u64, out: &mut String) {
    match kind {
        Kind::Domain => one(DOMAIN, value, "AF_???", out),
        Kind::SocketType => socket_type(value, out),
        Kind::Level => one(LEVEL, value, "SOL_???", out),
        Kind::Shutdown => one(SHUTDOWN, value, "SHUT_???", out),
        Kind::FutexOperation => futex(value, out),
        Kind::Futex2 => futex2(value, out),
        Kind::EpollCreate => bits(EPOLL_CREATE, value, "0", "EPOLL_???", out),
        Kind::EpollControl => one(EPOLL_CONTROL, value, "EPOLL_CTL_???", out),
        Kind::EpollEvents => bits(EPOLL_EVENTS, value, "0", "EPOLL???", out),
        Kind::Eventfd => bits(EVENTFD, value, "0", "EFD_???", out),
        Kind::Timerfd => bits(TIMERFD, value, "0", "TFD_???", out),
        Kind::TimerfdSet => bits(TIMERFD_SET, value, "0", "TFD_???", out),
        Kind::Signalfd => bits(SIGNALFD, value, "0", "SFD_???", out),
        Kind::Clock => one(CLOCK, value, "CLOCK_???", out),
        Kind::Timer => bits(TIMER, value, "0", "TIMER_???", out),
        Kind::Wait => bits(WAIT, value, "0", "W???", out),
        Kind::IdType => one(ID_TYPE, value, "P_???", out),
        _ => hex(value, out),
    }
}

/// Appends a value whose meaning the first argument decides: a protocol by the domain, an option
/// by the level.
pub(crate) fn write_of(kind: Kind, first: u64, value: u64, out: &mut String) {
    let (first, value) = (first & 0xffff_ffff, value & 0xffff_ffff);
    match (kind, first) {
        // AF_INET and AF_INET6, AF_NETLINK.
        (Kind::Protocol, 2 | 10) => one(PROTOCOL, value, "IPPROTO_???", out),
        (Kind::Protocol, 16) => one(NETLINK, value, "NETLINK_???", out),
        (Kind::SocketOption, 1) => one(SOCKET_OPTION, value, "SO_???", out),
        (Kind::SocketOption, 0) => one(IP_OPTION, value, "IP_???", out),
        (Kind::SocketOption, 41) => one(IPV6_OPTION, value, "IPV6_???", out),
        (Kind::SocketOption, 6) => one(TCP_OPTION, value, "TCP_???", out),
        (Kind::SocketOption, 17) => one(UDP_OPTION, value, "UDP_???", out),
        (Kind::SocketOption, _) => append(out, format_args!("{value:#x}")),
        _ => append(out, format_args!("{}", value as u32 as i32)),
    }
}

/// Appends the events of a struct pollfd.
pub(crate) fn write_poll_events(value: u16, out: &mut String) {
    bits(POLL_EVENTS, value.into(), "0", "POLL???", out);
}

fn socket_type(value: u64, out: &mut String) {
    const TYPE: u64 = 0xf;
    one(SOCKET_TYPE, value & TYPE, "SOCK_???", out);
    let start = out.len().saturating_sub(1);
    let rest = known_bits(super::tables::SOCKET, value & !TYPE, start, out);
    if rest != 0 {
        append(out, format_args!("|{rest:#x}"));
    }
}

fn futex(value: u64, out: &mut String) {
    let (operation, flags) = (value & !(PRIVATE | REALTIME), value & (PRIVATE | REALTIME));
    match FUTEX.iter().find(|(v, _)| *v == operation) {
        Some((_, name)) => out.push_str(name),
        None => return append(out, format_args!("{value:#x} /* FUTEX_??? */")),
    }
    if flags & PRIVATE != 0 {
        out.push_str("_PRIVATE");
    }
    if flags & REALTIME != 0 {
        out.push_str("|FUTEX_CLOCK_REALTIME");
    }
}

fn futex2(value: u64, out: &mut String) {
    const SIZE: u64 = 3;
    let start = out.len();
    one(FUTEX2_SIZE, value & SIZE, "FUTEX2_SIZE_???", out);
    let rest = known_bits(FUTEX2, value & !SIZE, start, out);
    if rest != 0 {
        separate(start, out);
        append(out, format_args!("{rest:#x}"));
    }
}
