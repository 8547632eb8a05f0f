exec ./metricsd
