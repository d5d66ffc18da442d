# The app over SSH or in a browser, without Python on the machine; docs/web.md says how.
FROM python:3.13-slim
COPY . /tmp/source
RUN pip install --no-cache-dir '/tmp/source[web]' && rm -r /tmp/source
# Whoever runs it: the user of the container may be any, so that what it writes belongs to them.
RUN mkdir --mode 1777 /home/annotator
ENV HOME=/home/annotator LANG=C.UTF-8 TERM=xterm-256color COLORTERM=truecolor
USER 1000:1000
WORKDIR /traces
ENTRYPOINT ["mast-tui"]
