"""Tests of the chart and of the images that it runs. Helm is the real one; nothing here wants a cluster, unless it says so."""
