mkdir reports
for i in 1 2 3 4 5; do seq $i 2000 > reports/r$i; done
i=0
while [ $i -lt 280 ]; do
    d=vendor/gem$i/lib
    mkdir -p $d/component_$i/helpers
    printf 'module Component%d\n  def self.value = %d\nend\n' $i $i > $d/component_$i/main.rb
    printf 'module Component%d\n  module Format\n    def self.call(x) = x.to_s\n  end\nend\n' $i > $d/component_$i/helpers/format.rb
    i=$((i + 1))
done
echo '# settings' > vendor/gem279/lib/lib_boot.rb
