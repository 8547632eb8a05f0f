mkdir journal
