exec swipl -q -f facts.pl -g main -t halt
