# docker build -t mast-tui . && docker run --rm -it -v "$PWD:/traces" mast-tui /traces
FROM python:3.13-slim
COPY . /tmp/source
RUN pip install --no-cache-dir /tmp/source && rm -r /tmp/source && useradd --create-home annotator
USER annotator
WORKDIR /traces
ENV LANG=C.UTF-8 TERM=xterm-256color COLORTERM=truecolor
ENTRYPOINT ["mast-tui"]
