mkdir views
i=0
while [ $i -lt 150 ]; do printf '<p>view %d: {{name}}, {{value}}</p>\n' $i > views/v$i.html; i=$((i + 1)); done
