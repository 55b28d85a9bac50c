"""Many mixed actions from several processes while their server is killed again and again: `make soak`."""
