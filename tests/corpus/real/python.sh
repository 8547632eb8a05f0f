# A program that reads, works and writes as Python's own library does.
# needs: python3
case $1 in
setup) python3 -c 'import json; json.dump({str(i): i for i in range(20000)}, open("in.json", "w"))' ;;
run) python3 -c 'import json, csv; d = json.load(open("in.json")); w = csv.writer(open("out.csv", "w")); [w.writerow([k, v]) for k, v in d.items()]' ;;
esac
