tcpdump -U -Z root -r day.pcap -w dns.pcap "udp port 53" && ls -l dns.pcap
